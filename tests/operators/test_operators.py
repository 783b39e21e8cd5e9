"""Every kind of operator: fields to fields, fitted, restored, told of."""

import pytest
import torch

from tests.sources import field_pairs, fit_on
from tests.surrogate.tiny import STAGES, TINY, build, make
from twoscale import FNO, METHODS, Affine, GlobalPCA, Grid, TwoscaleError, WholeField
from twoscale.domain.space import Space
from twoscale.fields.source import ArraySource
from twoscale.operators import operators as operators_module
from twoscale.operators.fitting import FitRecord
from twoscale.operators.operators import CodeOperator

any_method = pytest.mark.parametrize("method", METHODS)
SPACE = Space(Grid.square(16))


@pytest.fixture(scope="module")
def fitted(pairs):
    """Every method's operator, fitted, with what accompanied the fit."""
    operators = {}
    for method in METHODS:
        record = FitRecord()
        operators[method] = (fit_on(build(method), *pairs, record, seed=1), record)
    return operators


# Every operator


@any_method
def test_incomplete_weights_are_refused(method, fitted):
    state = dict(fitted[method][0].state_dict())
    del state[list(state)[-1]]
    wanted = r"the weights (lack|do not fit)|the scale of the fields is missing"
    with pytest.raises(TwoscaleError, match=wanted):
        build(method).restore(state, SPACE, SPACE)


@any_method
def test_every_stage_is_timed(method, fitted):
    seconds = fitted[method][1].clock.seconds
    assert set(seconds) == STAGES[method]
    assert all(value >= 0 for value in seconds.values())


@any_method
def test_every_training_leaves_its_history(method, fitted):
    histories = fitted[method][1].histories
    assert set(histories) == STAGES[method] & {"training", "refinement"}
    assert len(histories["training"]["validation_loss"]) == TINY[method]["epochs"]


@any_method
def test_progress_names_the_stages(method, pairs):
    stages = []
    fit_on(build(method), *pairs, progress=lambda *told: stages.append(told[:3]))
    epochs = TINY[method]["epochs"]
    assert ("training", epochs, epochs) in stages
    assert ("representations", 2, 2) in stages
    assert all(done <= total for _, done, total in stages)


def test_native_seams(fitted):
    tiling = SPACE.grid.partition((4, 4))
    expected = {
        "global": None,
        "local": tiling,
        "overlap": SPACE.grid.partition((4, 4), overlap=True),
        "refinement": tiling,
        "fno": None,
        "two-scale": tiling,
        "three-scale": tiling,
        "conforming": tiling,
        "whole-field": None,
    }
    assert {method: fitted[method][0].layout for method in METHODS} == expected


# Latent operators


def test_a_code_operator_encodes_predicts_and_decodes(fitted, poisson16):
    operator, _ = fitted["two-scale"]
    x = poisson16.batch.inputs[:4]
    with torch.no_grad():
        codes = operator.predictor(operator.inputs.encode(x))
        assert torch.equal(operator(x), operator.outputs.decode(codes))
    sizes = [
        layer.in_features for layer in operator.predictor.network if hasattr(layer, "in_features")
    ]
    assert sizes == [operator.inputs.code_size, 8]


def test_encoded_pairs_are_the_codes_of_both_sides(fitted, pairs):
    operator, _ = fitted["two-scale"]
    codes = operator.encode_pairs(pairs[1])
    x, u = pairs[1].inputs.batch().fields, pairs[1].outputs.batch().fields
    torch.testing.assert_close(codes.inputs, operator.inputs.encode(x))
    torch.testing.assert_close(codes.targets, operator.outputs.encode(u))


@pytest.mark.parametrize("objective", ["vector", "block-balanced", "score-normalised"])
def test_the_objective_is_what_is_minimised(objective, pairs):
    """The recorded validation loss is the objective's own formula on the kept weights."""
    record = FitRecord()
    operator = fit_on(build("two-scale", objective=objective), *pairs, record)
    training, held_out = (operator.encode_pairs(part) for part in pairs)
    with torch.no_grad():
        error = operator.predictor(held_out.inputs) - held_out.targets
    if objective == "score-normalised":
        error = error / training.targets.std(0, unbiased=False)
    if objective == "vector":
        expected = error.square().mean()
    else:
        coarse, residual = error.split(operator.outputs.block_sizes, 1)
        expected = 0.5 * coarse.square().mean() + 0.5 * residual.square().mean()
    best = min(record.histories["training"]["validation_loss"])
    assert best == pytest.approx(float(expected), rel=1e-4)


def test_the_representations_see_the_training_fields_only(pairs):
    """Other validation fields change neither side's PCA."""
    training, validation = pairs
    noise = field_pairs(*(ArraySource(torch.randn(10, 1, 16, 16)) for _ in range(2)))
    one = fit_on(build("two-scale"), training, validation).state_dict()
    two = fit_on(build("two-scale"), training, noise).state_dict()
    for name in one:
        if name.startswith(("inputs.", "outputs.")):
            assert torch.equal(one[name], two[name]), name


# Networks on whole fields, and refined operators


def test_a_network_on_whole_fields_works_on_normalised_fields(fitted, poisson16):
    operator, _ = fitted["fno"]
    x, u = (fields[:120].double() for fields in poisson16.batch)
    new = poisson16.batch.inputs[150:155]
    with torch.no_grad():
        inside = operator.predictor.network(((new - x.mean()) / x.std(unbiased=False)).float())
        expected = inside * u.std(unbiased=False) + u.mean()
        torch.testing.assert_close(operator(new), expected.float(), rtol=1e-4, atol=1e-6)


def test_a_refined_operator_corrects_its_base(fitted, poisson16):
    operator, _ = fitted["refinement"]
    x = poisson16.batch.inputs[:4]
    with torch.no_grad():
        assert torch.equal(operator(x), operator.correction(operator.base(x)))
        predicted = operator.base(poisson16.batch.inputs[:120])
    mean = operator.correction.inputs.scale.mean
    assert float(mean) == pytest.approx(float(predicted.double().mean()), rel=1e-4, abs=1e-8)


def test_the_base_of_a_refined_operator_is_the_plain_one(fitted, poisson16):
    x = poisson16.batch.inputs[:4]
    with torch.no_grad():
        assert torch.equal(fitted["refinement"][0].base(x), fitted["local"][0](x))


@pytest.mark.parametrize("symmetries", ["square", "shifts"])
def test_an_average_is_the_same_in_one_batch_and_image_by_image(symmetries, poisson16, monkeypatch):
    x, u = poisson16.batch
    surrogate = make(
        "local",
        predictor="affine",
        symmetries=symmetries,
        average_symmetries=True,
        periodic=symmetries == "shifts",
    ).fit(x, u)
    together = surrogate.operator_(x[:3])
    monkeypatch.setattr(operators_module, "_FEW_VALUES", 0)
    torch.testing.assert_close(together, surrogate.operator_(x[:3]))


def test_images_are_of_lines_and_planes():
    box = Space(Grid((4, 4, 4)))
    code_operator = CodeOperator(WholeField(), FNO(), WholeField())
    with pytest.raises(TwoscaleError, match="fno does not work on 4x4x4"):
        code_operator.check(box, box, 9)
    CodeOperator(GlobalPCA(2), Affine(), GlobalPCA(2)).check(box, box, 9)
