import math

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import torch

from tests.problems.contract import DiffusionContract, any_grid
from twoscale import Grid, Poisson
from twoscale.problems.random_field import GaussianRandomField


def second_difference(nodes):
    """The matrix of u'' at the interior nodes of one axis, with zero boundary values."""
    spacing = 1 / (nodes - 1)
    size = nodes - 2
    return scipy.sparse.diags_array(
        [np.ones(size - 1), -2 * np.ones(size), np.ones(size - 1)], offsets=[-1, 0, 1]
    ) / (spacing**2)


class TestPoisson(DiffusionContract):
    problem = Poisson()
    other = Poisson(forcing=GaussianRandomField(alpha=1.5, tau=0.1))

    def direct_solution(self, field):
        rows, columns = (second_difference(size) for size in field.shape)
        eye_rows, eye_columns = (scipy.sparse.eye_array(size - 2) for size in field.shape)
        matrix = scipy.sparse.kron(rows, eye_columns) + scipy.sparse.kron(eye_rows, columns)
        interior = scipy.sparse.linalg.spsolve(matrix.tocsc(), field[1:-1, 1:-1].ravel())
        solution = np.zeros(field.shape)
        solution[1:-1, 1:-1] = interior.reshape(field.shape[0] - 2, field.shape[1] - 2)
        return solution

    def right_side_scale(self, inputs):
        return float(inputs.square().mean().sqrt())

    def test_the_distribution_is_that_of_the_forcing(self):
        expected = {"kind": "gaussian random field", "alpha": 2.0, "tau": 3.0}
        assert self.problem.distribution == expected


def sine_case(grid, *, k=1, m=2):
    """f and u with Laplace(u) = f for u = sin(k pi y) sin(m pi x)."""
    y = torch.linspace(0, 1, grid.shape[0], dtype=torch.float64)[:, None]
    x = torch.linspace(0, 1, grid.shape[1], dtype=torch.float64)
    u = torch.sin(k * math.pi * y) * torch.sin(m * math.pi * x)
    return (-(k**2 + m**2) * math.pi**2 * u)[None], u[None]


def sine_error(grid):
    forcing, exact = sine_case(grid)
    return float((Poisson().solve(forcing) - exact).abs().max())


def test_the_sign_is_that_of_laplace_u_equals_f():
    forcing, exact = sine_case(Grid.square(65))
    solution = Poisson().solve(forcing)
    assert float((solution * exact).sum()) > 0
    torch.testing.assert_close(solution, exact, rtol=0, atol=5e-3)


def test_second_order_convergence_on_rectangles():
    errors = [sine_error(Grid(shape)) for shape in ((9, 25), (17, 49), (33, 97))]
    ratios = [errors[0] / errors[1], errors[1] / errors[2]]
    assert ratios == pytest.approx([4, 4], rel=0.05)


@any_grid
def test_sine_modes_are_eigenvectors(grid):
    """The discrete solution of a sine mode is that mode over its discrete eigenvalue."""
    forcing, mode = sine_case(grid, k=2, m=3)
    eigenvalue = -sum(
        4 / h**2 * math.sin(0.5 * n * math.pi * h) ** 2
        for n, h in zip((2, 3), grid.spacing, strict=True)
    )
    scale = -(2**2 + 3**2) * math.pi**2
    expected = mode * scale / eigenvalue
    torch.testing.assert_close(Poisson().solve(forcing), expected, rtol=1e-9, atol=1e-12)


def test_boundary_values_of_the_forcing_are_irrelevant(generator):
    forcing = torch.randn(2, 12, 12, dtype=torch.float64, generator=generator)
    other = forcing.clone()
    other[:, 0], other[:, :, -1] = 99.0, -99.0
    assert torch.equal(Poisson().solve(forcing), Poisson().solve(other))
