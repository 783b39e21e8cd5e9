import pytest
import torch

from twoscale.math.ridge import Modes, linear_modes, squared_errors

STRENGTHS = [1e-6, 0.1, 3.0, 50.0]
shapes = pytest.mark.parametrize(("samples", "features"), [(30, 5), (5, 30), (12, 12), (20, 1)])


@pytest.fixture
def draw(generator):
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def normal_equations(x, y, strength):
    eye = torch.eye(x.shape[1], dtype=x.dtype)
    return torch.linalg.solve(x.T @ x + strength * eye, x.T @ y)


@shapes
def test_the_weights_solve_the_normal_equations_for_every_strength(samples, features, draw):
    x, y = draw(samples, features), draw(samples, 3)
    directions, modes = linear_modes(x, y)
    assert directions.shape == (features, min(samples, features))
    for strength in STRENGTHS:
        got = directions @ modes.weights(strength)
        torch.testing.assert_close(got, normal_equations(x, y, strength), rtol=1e-6, atol=1e-8)


@shapes
def test_errors_are_those_of_the_weights_in_the_metric(samples, features, draw):
    x, y, new, truth, metric = (
        draw(*shape) for shape in ((samples, features), (samples, 3), (8, features), (8, 3), (3, 4))
    )
    directions, modes = linear_modes(x, y)
    got = squared_errors(modes, new @ directions, truth, STRENGTHS, [metric])
    for error, strength in zip(got, STRENGTHS, strict=True):
        difference = (new @ normal_equations(x, y, strength) - truth) @ metric
        torch.testing.assert_close(error, difference.square().sum(), rtol=1e-5, atol=0)


def test_the_grid_of_strengths_is_logarithmic_up_to_the_largest_value():
    modes = Modes(torch.tensor([1.0, 8.0], dtype=torch.float64), torch.ones(2, 1))
    grid = torch.tensor(modes.strengths(14), dtype=torch.float64)
    assert float(grid[-1]) == pytest.approx(8)
    assert float(grid[0]) == pytest.approx(8e-13)
    torch.testing.assert_close(grid[1:] / grid[:-1], torch.full((13,), 10.0, dtype=torch.float64))


@pytest.mark.parametrize("strength", [0.0, 1e-20])
@pytest.mark.parametrize(("samples", "features"), [(30, 8), (8, 30), (8, 8)])
def test_without_strength_it_is_the_pseudo_inverse(samples, features, strength, draw):
    """Centred samples and repeated features leave modes of nothing but rounding."""
    x, y = draw(samples, features), draw(samples, 3)
    x[:, -1] = x[:, 0] - 2 * x[:, 1]
    x, y = x - x.mean(0), y - y.mean(0)
    directions, modes = linear_modes(x, y)
    got = directions @ modes.weights(strength)
    torch.testing.assert_close(got, torch.linalg.pinv(x, rtol=1e-10) @ y, rtol=1e-6, atol=1e-8)


def test_nothing_that_varies_has_no_weight(draw):
    _, modes = linear_modes(torch.zeros(6, 3, dtype=torch.float64), draw(6, 2))
    assert modes.largest == 1.0
    for strength in (0.0, 1.0):
        assert not modes.weights(strength).any()
