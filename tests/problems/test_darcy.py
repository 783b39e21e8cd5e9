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


def test_the_medium_has_two_values():
    assert set(Darcy().sample(Grid.square(32), range(8), seed=0).unique().tolist()) == {4.0, 12.0}


def test_the_high_value_is_where_the_random_field_is_not_negative():
    problem, grid = Darcy(), Grid((16, 20))
    level = problem.medium.sample(
        grid, range(5), entropy=problem.entropy(grid, 3), device=torch.device("cpu")
    )
    medium = problem.sample(grid, range(5), seed=3)
    assert torch.equal(medium == 12.0, level >= 0)


def test_samples_differ_from_those_of_poisson():
    """The problem is part of the seed: the signs of the two random fields must not agree."""
    grid = Grid.square(32)
    darcy = Darcy().sample(grid, range(20), seed=0) > 8
    poisson = Poisson().sample(grid, range(20), seed=0) >= 0
    assert (darcy == poisson).float().mean() == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("value", [0.25, 4.0])
def test_a_constant_coefficient_is_poissons_equation(value):
    coefficient = torch.full((1, 17, 24), value, dtype=torch.float64)
    expected = Poisson().solve(-torch.ones_like(coefficient) / value)
    torch.testing.assert_close(Darcy().solve(coefficient), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", ["high", "low"])
@pytest.mark.parametrize("value", [0, -4.0, float("nan"), float("inf"), "12", True, None])
def test_values_that_are_not_positive_numbers_are_refused(name, value):
    with pytest.raises(TwoscaleError, match=f"{name} must be a positive finite number, got"):
        Darcy(**{name: value})


def test_a_smooth_coefficient_converges_with_second_order():
    """Against the solution on a grid four times finer, at the shared nodes."""

    def solution(size):
        x = torch.linspace(0, 1, size, dtype=torch.float64)
        coefficient = 2 + torch.sin(3 * x)[:, None] * torch.cos(2 * x)
        return Darcy().solve(coefficient[None])[0]

    finest = solution(129)
    coarse = (solution(17) - finest[::8, ::8]).abs().max()
    fine = (solution(33) - finest[::4, ::4]).abs().max()
    assert float(coarse / fine) == pytest.approx(4, rel=0.15)


def test_parts_of_a_batch_are_solved_as_one(coefficient, monkeypatch):
    whole = Darcy().solve(coefficient)
    monkeypatch.setattr(diffusion, "_SOLVE_VALUES", 3 * 20 * 20)
    torch.testing.assert_close(Darcy().solve(coefficient), whole, rtol=1e-11, atol=1e-14)


def test_iterations_are_few_and_do_not_grow_with_the_grid():
    """The preconditioned operator's condition is at most the contrast, whatever the resolution."""
    problem = Darcy()
    counts = []
    for size in (17, 33, 65):
        inputs = problem.sample(Grid.square(size), range(3), seed=0)
        result = problem.solve_interior(inputs)
        assert bool((result.residual <= 1e-10).all())
        counts.append(int(result.iterations.max()))
    assert max(counts) <= 40


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_coefficient_that_is_not_positive_is_refused(coefficient, value):
    coefficient[2, 5, 5] = value
    with pytest.raises(TwoscaleError, match="needs a coefficient that is positive everywhere"):
        Darcy().solve(coefficient)


def test_a_solve_that_does_not_converge_is_refused(coefficient, monkeypatch):
    few_steps = partial(diffusion.conjugate_gradients, max_steps=3)
    monkeypatch.setattr(diffusion, "conjugate_gradients", few_steps)
    with pytest.raises(
        TwoscaleError, match=r"stopped at relative residual \d.* contrast is too high"
    ):
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
