from functools import partial

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import torch

from tests.problems.contract import DiffusionContract
from twoscale import Darcy, Grid, Poisson, TwoscaleError
from twoscale.problems import diffusion
from twoscale.problems.darcy import rounding_residual
from twoscale.problems.random_field import GaussianRandomField


def sparse_solution(field):
    """Assemble node by node: each neighbour is coupled through the mean coefficient."""
    height, width = field.shape
    h = (1 / (height - 1), 1 / (width - 1))
    number = -np.ones(field.shape, dtype=int)
    number[1:-1, 1:-1] = np.arange((height - 2) * (width - 2)).reshape(height - 2, width - 2)
    matrix = scipy.sparse.lil_array((number.max() + 1, number.max() + 1))
    for i in range(1, height - 1):
        for j in range(1, width - 1):
            here = number[i, j]
            for di, dj, spacing in ((1, 0, h[0]), (-1, 0, h[0]), (0, 1, h[1]), (0, -1, h[1])):
                weight = (field[i, j] + field[i + di, j + dj]) / 2 / spacing**2
                matrix[here, here] += weight
                there = number[i + di, j + dj]
                if there >= 0:
                    matrix[here, there] -= weight
    solution = np.zeros(field.shape)
    inner = scipy.sparse.linalg.spsolve(matrix.tocsc(), np.ones(number.max() + 1))
    solution[1:-1, 1:-1] = inner.reshape(height - 2, width - 2)
    return solution


class TestDarcy(DiffusionContract):
    problem = Darcy()
    other = Darcy(medium=GaussianRandomField(alpha=3, tau=7), high=100, low=1 / 3)

    def direct_solution(self, field):
        return sparse_solution(field)

    def right_side_scale(self, inputs):
        return 1.0


@pytest.fixture
def coefficient():
    return Darcy().sample(Grid.square(20), range(4), seed=0)


def test_the_high_value_is_where_the_random_field_is_not_negative():
    problem, grid = Darcy(), Grid((16, 20))
    level = problem.medium.sample(
        grid, range(5), entropy=problem.entropy(grid, 3), device=torch.device("cpu")
    )
    medium = problem.sample(grid, range(5), seed=3)
    assert torch.equal(medium == 12.0, level >= 0)


@pytest.mark.parametrize("value", [0.25, 4.0])
def test_a_constant_coefficient_is_poissons_equation(value):
    coefficient = torch.full((1, 17, 24), value, dtype=torch.float64)
    expected = Poisson().solve(-torch.ones_like(coefficient) / value)
    torch.testing.assert_close(Darcy().solve(coefficient), expected, rtol=1e-9, atol=1e-14)


def test_a_solve_that_does_not_converge_is_refused(coefficient, monkeypatch):
    few_steps = partial(diffusion.conjugate_gradients, max_steps=3)
    monkeypatch.setattr(diffusion, "conjugate_gradients", few_steps)
    with pytest.raises(TwoscaleError, match=r"relative residual \d.* contrast"):
        Darcy().solve(coefficient)


def test_rounding_that_no_solver_can_avoid_is_allowed(coefficient):
    """No residual reaches zero; what double precision leaves is accepted, and is tiny."""
    result = Darcy().solve_interior(coefficient, tolerance=0.0)
    assert bool((result.residual <= rounding_residual(coefficient, result.solution)).all())
    assert bool((result.residual < 1e-13).all())


def test_a_smooth_threshold_tends_to_the_jump():
    problem, grid = Darcy(), Grid((16, 16))
    weights = torch.randn(40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    level = torch.tensordot(weights, problem.level_modes(grid, 40), 1)
    sharp = problem.inputs_of(level)
    assert set(sharp.flatten().tolist()) == {4.0, 12.0}
    torch.testing.assert_close(problem.inputs_of(level, width=1e-6), sharp)
    smooth = problem.inputs_of(level, width=0.1)
    assert bool(((smooth - 8) * level >= 0).all())
    assert 4 < float(smooth.min()) < float(smooth.max()) < 12
