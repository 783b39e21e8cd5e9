import pytest
import torch

from tests.representation.contract import Chunks
from tests.surrogate.tiny import TINY, tiny
from twoscale import METHODS, Grid, PatchLayout, TwoscaleError
from twoscale.objectives import OBJECTIVES
from twoscale.source import ArraySource
from twoscale.surrogate.context import FieldPairs, FitContext
from twoscale.surrogate.methods import resolve
from twoscale.surrogate.nearest import NearestCodes
from twoscale.surrogate.operators import FieldOperator, Normaliser
from twoscale.surrogate.predictors import PREDICTORS
from twoscale.surrogate.settings import CLOSED_FORMS
from twoscale.symmetries import SQUARE

any_method = pytest.mark.parametrize("method", METHODS)


def build(method, **settings):
    return METHODS[method].build(Grid.square(16), resolve(method, tiny(method, **settings)))


@pytest.fixture(scope="module")
def pairs(poisson16):
    """Training and validation pairs."""
    x, u = poisson16
    return (
        FieldPairs(ArraySource(x[:120]), ArraySource(u[:120])),
        FieldPairs(ArraySource(x[120:150]), ArraySource(u[120:150])),
    )


@pytest.fixture(scope="module")
def fitted(pairs):
    """Every method's operator, fitted, with what accompanied the fit."""
    operators = {}
    for method in METHODS:
        context = FitContext(seed=1)
        operators[method] = (build(method).fit(*pairs, context), context)
    return operators


# Every operator


@any_method
def test_an_operator_maps_fields_to_fields(method, fitted, poisson16):
    operator, _ = fitted[method]
    with torch.no_grad():
        assert operator(poisson16.inputs[:5]).shape == (5, 16, 16)


@any_method
def test_fitting_leaves_the_fields_unchanged(method, poisson16):
    x, u = poisson16.inputs.clone(), poisson16.outputs.clone()
    training = FieldPairs(ArraySource(x[:100]), ArraySource(u[:100]))
    validation = FieldPairs(ArraySource(x[100:]), ArraySource(u[100:]))
    build(method).fit(training, validation, FitContext())
    assert torch.equal(x, poisson16.inputs)
    assert torch.equal(u, poisson16.outputs)


@any_method
def test_a_restored_operator_gives_the_same_bits(method, fitted, poisson16):
    operator, _ = fitted[method]
    state = {name: tensor.clone() for name, tensor in operator.state_dict().items()}
    restored = build(method).restore(state)
    with torch.no_grad():
        assert torch.equal(restored(poisson16.inputs[:7]), operator(poisson16.inputs[:7]))
    assert restored.layout == operator.layout


@any_method
def test_incomplete_weights_are_refused(method, fitted):
    state = dict(fitted[method][0].state_dict())
    del state[list(state)[-1]]
    with pytest.raises(TwoscaleError, match=r"the weights (lack|do not fit)"):
        build(method).restore(state)


@any_method
def test_chunked_sources_give_nearly_the_same_operator(method, pairs, fitted, poisson16):
    """Only sums are taken in another order."""
    training, validation = (
        FieldPairs(Chunks(part.inputs.fields), Chunks(part.outputs.fields)) for part in pairs
    )
    operator = build(method).fit(training, validation, FitContext(seed=1))
    with torch.no_grad():
        expected = fitted[method][0](poisson16.inputs[150:])
        got = operator(poisson16.inputs[150:])
    assert float((got - expected).norm() / expected.norm()) < 0.02


STAGES = {
    "global": {"pca_input", "pca_output", "transform", "training"},
    "local": {"pca_input", "pca_output", "transform", "training"},
    "overlap": {"pca_input", "pca_output", "transform", "training"},
    "refinement": {"pca_input", "pca_output", "transform", "training", "refinement"},
    "fno": {"transform", "training"},
    "two-scale": {
        "pca_input",
        "pca_coarse",
        "pca_residual",
        "pca_overhead",
        "transform",
        "training",
    },
}
STAGES["three-scale"] = STAGES["two-scale"] | {"pca_middle"}
STAGES["conforming"] = STAGES["local"] - {"pca_output"} | {
    "pca_skeleton",
    "pca_bubbles",
    "pca_overhead",
}


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
    context = FitContext(
        progress=lambda stage, done, total, remark: stages.append((stage, done, total))
    )
    build(method).fit(*pairs, context)
    epochs = TINY[method]["epochs"]
    assert ("training", epochs, epochs) in stages
    assert (("representations", 2, 2) in stages) == (method != "fno")
    assert all(done <= total for _, done, total in stages)


def test_native_seams(fitted):
    tiling = PatchLayout.tiling((16, 16), (4, 4))
    expected = {
        "global": None,
        "local": tiling,
        "overlap": PatchLayout.tiling((16, 16), (4, 4), overlap=True),
        "refinement": tiling,
        "fno": None,
        "two-scale": tiling,
        "three-scale": tiling,
        "conforming": tiling,
    }
    assert {method: fitted[method][0].layout for method in METHODS} == expected


def test_the_contract_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        FieldOperator()


# Latent operators


def test_a_latent_operator_encodes_predicts_and_decodes(fitted, poisson16):
    operator, _ = fitted["two-scale"]
    x = poisson16.inputs[:4]
    with torch.no_grad():
        codes = operator.predictor(operator.input_representation.encode(x))
        assert torch.equal(operator(x), operator.output_representation.decode(codes))
    sizes = [
        layer.in_features for layer in operator.predictor.network if hasattr(layer, "in_features")
    ]
    assert sizes == [operator.input_representation.code_size, 8]


def test_encoded_pairs_are_the_codes_of_both_sides(fitted, pairs):
    operator, _ = fitted["two-scale"]
    codes = operator.encode_pairs(pairs[1])
    x, u = pairs[1].inputs.fields, pairs[1].outputs.fields
    torch.testing.assert_close(codes.inputs, operator.input_representation.encode(x))
    torch.testing.assert_close(codes.targets, operator.output_representation.encode(u))


@pytest.mark.parametrize("objective", ["vector", "block-balanced", "score-normalised"])
def test_the_objective_is_what_is_minimised(objective, pairs):
    """The recorded validation loss is the objective's own formula on the kept weights."""
    context = FitContext()
    operator = build("two-scale", objective=objective).fit(*pairs, context)
    training, held_out = (operator.encode_pairs(part) for part in pairs)
    with torch.no_grad():
        error = operator.predictor(held_out.inputs) - held_out.targets
    if objective == "score-normalised":
        error = error / training.targets.std(0, unbiased=False)
    if objective == "vector":
        expected = error.square().mean()
    else:
        coarse, residual = error.split(operator.output_representation.block_sizes, 1)
        expected = 0.5 * coarse.square().mean() + 0.5 * residual.square().mean()
    best = min(context.histories["training"]["validation_loss"])
    assert best == pytest.approx(float(expected), rel=1e-4)


def test_the_representations_see_the_training_fields_only(pairs):
    """Other validation fields change neither side's PCA."""
    training, validation = pairs
    noise = FieldPairs(ArraySource(torch.randn(10, 16, 16)), ArraySource(torch.randn(10, 16, 16)))
    one = build("two-scale").fit(training, validation, FitContext()).state_dict()
    two = build("two-scale").fit(training, noise, FitContext()).state_dict()
    for name in one:
        if "representation" in name:
            assert torch.equal(one[name], two[name]), name


# Predictors and symmetries

EQUIVARIANT = {"solver": "covariance", "symmetries": "square", "few_features": False}


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("method", ["global", "local", "overlap", "two-scale", "three-scale"])
def test_every_latent_method_takes_every_predictor(method, predictor, pairs, poisson16):
    context = FitContext()
    operator = build(method, predictor=predictor).fit(*pairs, context)
    x = poisson16.inputs[:5]
    with torch.no_grad():
        expected = operator(x)
    assert bool(torch.isfinite(expected).all())
    restored = build(method, predictor=predictor).restore(operator.state_dict())
    with torch.no_grad():
        assert torch.equal(restored(x), expected)
    inputs = {"pca_input"} if predictor == "encoder" else set()
    assert set(context.clock.seconds) == STAGES[method] - inputs
    assert ("training" in context.histories) == (predictor not in CLOSED_FORMS)


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_refinement_follows_any_predictor(predictor, pairs, poisson16):
    operator = build("refinement", predictor=predictor).fit(*pairs, FitContext())
    with torch.no_grad():
        assert operator(poisson16.inputs[:3]).shape == (3, 16, 16)


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_the_field_objective_learns_the_nearest_codes(predictor, pairs):
    operator = build("two-scale", predictor=predictor, objective="field")
    operator.fit(*pairs, FitContext())
    fields = pairs[1].outputs.fields
    expected = NearestCodes(operator.output_representation)(fields)
    assert torch.equal(operator.encode_pairs(pairs[1]).targets, expected)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("predictor", PREDICTORS)
def test_every_predictor_learns_a_constant(predictor, objective, pairs, poisson16):
    values = [ArraySource(torch.full(one.inputs.shape, 2.5)) for one in pairs]
    constant = [FieldPairs(one.inputs, fields) for one, fields in zip(pairs, values, strict=True)]
    operator = build("two-scale", predictor=predictor, objective=objective)
    operator.fit(*constant, FitContext())
    with torch.no_grad():
        predicted = operator(poisson16.inputs[150:])
    torch.testing.assert_close(predicted, torch.full_like(predicted, 2.5))


def test_poisson_is_affine(pairs, poisson16):
    """The whole error of the affine map is that of the two representations."""
    full = {"input_variance": 1.0, "output_variance": 1.0}
    operator = build("global", predictor="affine", symmetries="square", **full)
    operator.fit(*pairs, FitContext())
    x, u = (fields[150:] for fields in poisson16)
    with torch.no_grad():
        error = float((operator(x) - u).norm() / u.norm())
    assert error < 1e-4


def turned_apart(operator, fields):
    """Return how far predictions from turned inputs are from turned predictions, relatively."""
    with torch.no_grad():
        expected = operator(fields)
        apart = [float((g.inverse(operator(g(fields))) - expected).norm()) for g in SQUARE]
    return max(apart) / float(expected.norm())


@pytest.mark.parametrize("predictor", CLOSED_FORMS)
def test_with_symmetries_a_closed_form_turns_with_its_input(predictor, pairs, poisson16):
    new = poisson16.inputs[150:160]
    plain = build("two-scale", predictor=predictor, **EQUIVARIANT | {"symmetries": "none"})
    symmetric = build("two-scale", predictor=predictor, **EQUIVARIANT)
    assert turned_apart(plain.fit(*pairs, FitContext()), new) > 0.01
    assert turned_apart(symmetric.fit(*pairs, FitContext()), new) < 1e-4


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_averaged_predictions_turn_with_their_input_whatever_the_predictor(
    predictor, pairs, poisson16
):
    options = {"predictor": predictor, "symmetries": "square"}
    operator = build("local", average_symmetries=True, **options).fit(*pairs, FitContext())
    new = poisson16.inputs[150:160]
    assert turned_apart(operator, new) < 1e-5
    single = build("local", **options).restore(operator.state_dict())
    with torch.no_grad():
        images = [g.inverse(single(g(new))) for g in SQUARE]
        torch.testing.assert_close(operator(new), sum(images) / 8, rtol=1e-5, atol=1e-7)


def test_symmetries_multiply_the_training_codes(pairs):
    operator = build("local", symmetries="square", predictor="affine").fit(*pairs, FitContext())
    codes = operator.encode_pairs(pairs[0], SQUARE)
    assert codes.inputs.shape[0] == codes.targets.shape[0] == 8 * 120
    x = pairs[0].inputs.fields
    for place, symmetry in enumerate(SQUARE):
        part = codes.inputs[120 * place : 120 * (place + 1)]
        torch.testing.assert_close(part, operator.input_representation.encode(symmetry(x)))


def test_representations_are_fitted_on_all_images(pairs):
    operator = build("local", symmetries="square", predictor="affine").fit(*pairs, FitContext())
    fields = pairs[0].outputs.fields
    images = torch.cat([symmetry(fields) for symmetry in SQUARE])
    expected = build("local").output_representation.fit(images, seed=1)
    got = operator.output_representation
    assert got.ranks == expected.ranks
    torch.testing.assert_close(
        got.reconstruct(fields), expected.reconstruct(fields), rtol=0, atol=1e-5
    )


def test_images_count_as_training_fields():
    operator = build("two-scale", coarse_factor=1, symmetries="square")
    operator.check((16, 16), 33)  # 264 images, 256 nodes
    with pytest.raises(TwoscaleError, match=r"256 nodes for 256 fields.* few_features=false"):
        operator.check((16, 16), 32)
    build("two-scale", coarse_factor=1, few_features=False).check((16, 16), 32)


def test_a_rectangle_has_the_symmetries_that_fit(generator):
    x = torch.randn(40, 8, 16, generator=generator)
    fields = FieldPairs(ArraySource(x), ArraySource(x.cumsum(2)))
    settings = resolve("local", {"predictor": "affine", "symmetries": "square", "patches": 2})
    operator = METHODS["local"].build(Grid(8, 16), settings).fit(fields, fields, FitContext())
    with torch.no_grad():
        assert operator(x).shape == x.shape


# Normalisation


@pytest.mark.parametrize("lengths", [(100,), (3,), (1, 5)])
def test_one_mean_and_one_deviation_for_everything(lengths, generator):
    fields = 5 + 0.3 * torch.randn(20, 8, 9, generator=generator)
    scale = Normaliser().fit(Chunks(fields, lengths))
    assert float(scale.mean) == pytest.approx(float(fields.double().mean()), rel=1e-6)
    expected = float(fields.double().std(unbiased=False))
    assert float(scale.std) == pytest.approx(expected, rel=1e-6)


def test_a_first_value_of_zero_is_a_value_like_any_other(generator):
    """Solutions vanish in the corner, where the shift of the sums is taken."""
    fields = torch.randn(6, 8, 8, generator=generator)
    fields[0, 0, 0], fields[2, 0, 0] = 0.0, 50.0
    scale = Normaliser().fit(Chunks(fields, (2,)))
    assert float(scale.mean) == pytest.approx(float(fields.mean()), rel=1e-5)
    assert float(scale.std) == pytest.approx(float(fields.std(unbiased=False)), rel=1e-5)


def test_normalising_and_its_inverse(generator):
    fields = 3 + 2 * torch.randn(10, 8, 8, generator=generator)
    scale = Normaliser().fit(ArraySource(fields))
    normalised = scale.apply_to(ArraySource(fields))
    assert float(normalised.mean()) == pytest.approx(0, abs=1e-5)
    assert float(normalised.std(unbiased=False)) == pytest.approx(1, rel=1e-5)
    torch.testing.assert_close(scale.undo(normalised), fields)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0])
def test_constant_fields_are_only_shifted(value):
    fields = torch.full((3, 8, 8), value)
    scale = Normaliser().fit(ArraySource(fields))
    assert float(scale.std) == 1.0
    assert not scale(fields).any()


# Full-field and refined operators


def test_a_full_field_operator_works_on_normalised_fields(fitted, poisson16):
    operator, _ = fitted["fno"]
    x, u = poisson16.inputs[:120].double(), poisson16.outputs[:120].double()
    new = poisson16.inputs[150:155]
    with torch.no_grad():
        inside = operator.network(((new - x.mean()) / x.std(unbiased=False)).float())
        expected = inside * u.std(unbiased=False) + u.mean()
        torch.testing.assert_close(operator(new), expected.float(), rtol=1e-4, atol=1e-6)


def test_a_refined_operator_corrects_its_base(fitted, poisson16):
    operator, _ = fitted["refinement"]
    x = poisson16.inputs[:4]
    with torch.no_grad():
        assert torch.equal(operator(x), operator.correction(operator.base(x)))
        predicted = operator.base(poisson16.inputs[:120])
    mean = operator.correction.input_scale.mean
    assert float(mean) == pytest.approx(float(predicted.double().mean()), rel=1e-4, abs=1e-8)


def test_the_base_of_a_refined_operator_is_the_plain_one(fitted, poisson16):
    x = poisson16.inputs[:4]
    with torch.no_grad():
        assert torch.equal(fitted["refinement"][0].base(x), fitted["local"][0](x))
