import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from twoscale.predictors import fit_affine
from twoscale.predictors.affine import STRENGTH_COUNT
from twoscale.training import CodePairs

PLAIN = torch.eye(4, dtype=torch.float64)


@pytest.fixture
def draw(generator):
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def pairs(draw):
    """Training and validation codes of a noisy affine map."""
    matrix, shift = draw(9, 4), draw(4)

    def make(samples):
        x = 3 + draw(samples, 9) * torch.logspace(0, -2, 9, dtype=torch.float64)
        return CodePairs(x, x @ matrix + shift + 0.3 * draw(samples, 4))

    return make(25), make(40)


def predictions(fit, x):
    return x @ fit.weight.T + fit.bias


@pytest.mark.parametrize("samples", [25, 6])
@pytest.mark.parametrize("strength", [1e-8, 1e-3, 0.5])
def test_it_is_scikit_learns_ridge_with_an_intercept(pairs, samples, strength):
    training = CodePairs(pairs[0].inputs[:samples], pairs[0].targets[:samples])
    fit = fit_affine(training, pairs[1], PLAIN, strength=strength)
    centred = training.inputs - training.inputs.mean(0)
    largest = float(torch.linalg.matrix_norm(centred, 2)) ** 2
    peer = Ridge(alpha=strength * largest, solver="svd").fit(training.inputs, training.targets)
    expected = peer.predict(pairs[1].inputs.numpy())
    np.testing.assert_allclose(predictions(fit, pairs[1].inputs), expected, rtol=1e-5, atol=1e-6)
    assert fit.strength == pytest.approx(strength)


def test_the_chosen_strength_is_the_best_of_the_grid(pairs, draw):
    training, validation = pairs
    metric = draw(4, 5)
    fit = fit_affine(training, validation, metric)
    assert len(fit.strengths) == STRENGTH_COUNT

    def error(strength):
        one = fit_affine(training, validation, metric, strength=strength)
        wrong = predictions(one, validation.inputs) - validation.targets
        return float((wrong @ metric).square().sum())

    errors = [error(strength) for strength in fit.strengths]
    assert fit.errors.tolist() == pytest.approx(errors, rel=1e-6)
    assert fit.strength == pytest.approx(fit.strengths[int(np.argmin(errors))])
    assert fit.strength not in (
        fit.strengths[0],
        fit.strengths[-1],
    )  # there was something to choose


def test_the_metric_decides_what_counts(pairs):
    """An output of weight zero may be as wrong as it likes."""
    training, validation = pairs
    spoiled = CodePairs(validation.inputs, validation.targets.clone())
    spoiled.targets[:, 3] = 1e3
    metric = torch.diag(torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64))
    expected = fit_affine(training, validation, metric)
    assert fit_affine(training, spoiled, metric).strength == expected.strength
    assert fit_affine(training, spoiled, PLAIN).strength != expected.strength


def test_importance_is_the_length_of_the_outputs_change(pairs, draw):
    metric = draw(4, 5)
    fit = fit_affine(*pairs, metric)
    expected = [float((column @ metric).norm()) for column in fit.weight.T]
    assert fit.importance(metric).tolist() == pytest.approx(expected)
