"""Latent operators with every predictor, and with symmetries."""

import pytest
import torch

from tests.sources import field_pairs, fit_on
from tests.surrogate.tiny import STAGES, build
from twoscale import Grid, TwoscaleError
from twoscale.domain.space import Space
from twoscale.domain.symmetries import SQUARE
from twoscale.fields.source import ArraySource
from twoscale.operators.fitting import FitRecord
from twoscale.predictors import predictors
from twoscale.representation.geometry import NearestCodes
from twoscale.training.task import OBJECTIVES

SPACE = Space(Grid.square(16))
CLOSED_FORMS = [name for name, kind in predictors().items() if kind.closed_form]
EQUIVARIANT = {"solver": "covariance", "symmetries": "square", "few_features": False}


@pytest.mark.parametrize("predictor", predictors())
@pytest.mark.parametrize("method", ["global", "local", "overlap", "two-scale", "three-scale"])
def test_every_latent_method_takes_every_predictor(method, predictor, pairs, poisson16):
    record = FitRecord()
    operator = fit_on(build(method, predictor=predictor), *pairs, record)
    x = poisson16.batch.inputs[:5]
    with torch.no_grad():
        expected = operator(x)
    assert bool(torch.isfinite(expected).all())
    restored = build(method, predictor=predictor)
    restored.restore(operator.state_dict(), SPACE, SPACE)
    with torch.no_grad():
        assert torch.equal(restored(x), expected)
    inputs = {"pca_input"} if predictors()[predictor].reads_fields else set()
    assert set(record.clock.seconds) == STAGES[method] - inputs
    assert ("training" in record.histories) == (predictor not in CLOSED_FORMS)


@pytest.mark.parametrize("predictor", predictors())
def test_the_field_objective_learns_the_nearest_codes(predictor, pairs):
    operator = build("two-scale", predictor=predictor, objective="field")
    fit_on(operator, *pairs)
    fields = pairs[1].outputs.batch().fields
    expected = NearestCodes(operator.outputs)(fields)
    assert torch.equal(operator.encode_pairs(pairs[1]).targets, expected)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("predictor", predictors())
def test_every_predictor_learns_a_constant(predictor, objective, pairs, poisson16):
    values = [ArraySource(torch.full(one.inputs.fields.shape, 2.5)) for one in pairs]
    constant = [
        field_pairs(one.inputs.fields, fields) for one, fields in zip(pairs, values, strict=True)
    ]
    operator = build("two-scale", predictor=predictor, objective=objective)
    fit_on(operator, *constant)
    with torch.no_grad():
        predicted = operator(poisson16.batch.inputs[150:])
    torch.testing.assert_close(predicted, torch.full_like(predicted, 2.5))


def test_poisson_is_affine(pairs, poisson16):
    """The whole error of the affine map is that of the two representations."""
    full = {"input_variance": 1.0, "output_variance": 1.0}
    operator = build("global", predictor="affine", symmetries="square", **full)
    fit_on(operator, *pairs)
    x, u = (fields[150:] for fields in poisson16.batch)
    with torch.no_grad():
        error = float((operator(x) - u).norm() / u.norm())
        oracle = float((operator.outputs.reconstruct(u) - u).norm() / u.norm())
    assert error < oracle + 1e-5
    assert oracle < 1e-3


def turned_apart(operator, fields):
    """Return how far predictions from turned inputs are from turned predictions, relatively."""
    with torch.no_grad():
        expected = operator(fields)
        apart = [float((g.inverse(operator(g(fields))) - expected).norm()) for g in SQUARE]
    return max(apart) / float(expected.norm())


@pytest.mark.parametrize("predictor", CLOSED_FORMS)
def test_with_symmetries_a_closed_form_turns_with_its_input(predictor, pairs, poisson16):
    new = poisson16.batch.inputs[150:160]
    plain = build("two-scale", predictor=predictor, **EQUIVARIANT | {"symmetries": "none"})
    symmetric = build("two-scale", predictor=predictor, **EQUIVARIANT)
    assert turned_apart(fit_on(plain, *pairs), new) > 0.01
    assert turned_apart(fit_on(symmetric, *pairs), new) < 1e-4


@pytest.mark.parametrize("predictor", predictors())
def test_averaged_predictions_turn_with_their_input_whatever_the_predictor(
    predictor, pairs, poisson16
):
    options = {"predictor": predictor, "symmetries": "square"}
    operator = fit_on(build("local", average_symmetries=True, **options), *pairs)
    new = poisson16.batch.inputs[150:160]
    assert turned_apart(operator, new) < 1e-5
    single = build("local", **options).restore(operator.state_dict(), SPACE, SPACE)
    with torch.no_grad():
        images = [g.inverse(single(g(new))) for g in SQUARE]
        torch.testing.assert_close(operator(new), sum(images) / 8, rtol=1e-5, atol=1e-7)


def test_symmetries_multiply_the_training_codes(pairs):
    operator = fit_on(build("local", symmetries="square", predictor="affine"), *pairs)
    codes = operator.encode_pairs(pairs[0], SQUARE)
    assert codes.inputs.shape[0] == codes.targets.shape[0] == 8 * 120
    x = pairs[0].inputs.batch().fields
    for place, symmetry in enumerate(SQUARE):
        part = codes.inputs[120 * place : 120 * (place + 1)]
        torch.testing.assert_close(part, operator.inputs.encode(symmetry(x)))


def test_representations_are_fitted_on_all_images(pairs):
    operator = fit_on(build("local", symmetries="square", predictor="affine"), *pairs)
    fields = pairs[0].outputs.batch().fields
    images = torch.cat([symmetry(fields) for symmetry in SQUARE])
    expected = build("local").outputs.fit(images, seed=1)
    got = operator.outputs
    assert got.ranks == expected.ranks
    torch.testing.assert_close(
        got.reconstruct(fields), expected.reconstruct(fields), rtol=0, atol=1e-5
    )


def test_images_count_as_training_fields():
    operator = build("two-scale", coarse_factor=1, symmetries="square")
    operator.check(SPACE, SPACE, 33)  # 264 images, 256 nodes
    with pytest.raises(TwoscaleError, match=r"256 values for 256 fields.* few_features"):
        operator.check(SPACE, SPACE, 32)
    build("two-scale", coarse_factor=1, few_features=False).check(SPACE, SPACE, 32)


def test_a_rectangle_has_the_symmetries_that_fit(generator):
    x = torch.randn(40, 1, 8, 16, generator=generator)
    fields = field_pairs(ArraySource(x), ArraySource(x.cumsum(3)))
    operator = build("local", predictor="affine", symmetries="square", patches=2)
    fit_on(operator, fields, fields)
    assert len(operator.group) == 4
    with torch.no_grad():
        assert operator(x).shape == x.shape
