import pytest
import torch

from twoscale import Darcy, Grid
from twoscale.trust.energy import EnergyNorm

GRID = Grid((8, 10))
AREA = 1 / (7 * 9)


@pytest.fixture
def system():
    problem = Darcy(high=50.0, low=1.0)
    return problem.system(problem.sample(GRID, [0], seed=0))


@pytest.fixture
def matrix(system):
    """A as a dense matrix."""
    units = torch.eye(6 * 8, dtype=torch.float64).reshape(-1, 6, 8)
    return torch.stack([system.apply(unit[None])[0] for unit in units]).flatten(1)


@pytest.fixture
def field(generator):
    return torch.randn(1, 6, 8, dtype=torch.float64, generator=generator)


def test_the_norm_is_that_of_the_matrix(system, matrix, field):
    expected = (AREA * field.flatten() @ matrix @ field.flatten()).sqrt()
    torch.testing.assert_close(EnergyNorm(system)(field)[0], expected)


def test_the_residual_is_that_of_the_matrix(system, matrix, field):
    values, rounding = EnergyNorm(system).residual(field)
    expected = 1 - matrix @ field.flatten()
    torch.testing.assert_close(values.flatten(), expected)
    dual = EnergyNorm(system).dual_norm(EnergyNorm(system).residual(field)).upper
    assert bool((rounding > 0) & (rounding < 1e-12 * dual))


def test_the_dual_norm_of_an_image_is_the_norm(system, field):
    norm = EnergyNorm(system)
    lower, upper = norm.dual_norm(norm.right_side._replace(values=system.apply(field)))
    true = norm(field)
    assert bool((lower <= true) & (true <= upper))
    assert bool((upper < 1.5 * true) & (true < 1.5 * lower))


def test_two_steps_bound_better_than_one(system, field):
    norm = EnergyNorm(system)
    values = system.apply(field)
    z = -torch.linalg.solve(_laplacian(), values.flatten()).reshape(1, 6, 8)
    upper = norm.dual_norm(norm.right_side._replace(values=values)).upper
    assert bool((norm(field) < upper) & (upper < norm.gradient_bound(z)))


def _laplacian():
    units = torch.eye(6 * 8, dtype=torch.float64).reshape(-1, 6, 8)
    system = Darcy().system(torch.ones(1, *GRID.shape))
    return -torch.stack([system.apply(unit[None])[0] for unit in units]).flatten(1)


@pytest.mark.parametrize("share", [0.0, 0.9, 1.0, 30.0])
def test_the_solution_is_bounded_from_any_field(system, matrix, field, share):
    """From nothing, from a near field, from the solution, and from one that says nothing."""
    norm = EnergyNorm(system)
    ones = torch.ones(6 * 8, dtype=torch.float64)
    solution = torch.linalg.solve(matrix, ones).reshape(1, 6, 8)
    start = share * solution + 1e-4 * field
    residual = norm.residual(start)
    lower, upper = norm.solution_norm(start, residual, norm.dual_norm(residual))
    true = norm(solution)
    assert bool((lower <= true * (1 + 1e-12)) & (true <= upper * (1 + 1e-12)))
    assert bool((upper < 2 * lower) if share < 2 else (upper < 20 * lower))
