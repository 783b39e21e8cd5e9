import math

import pytest
import torch

from twoscale import Grid
from twoscale.problems.diffusion import diffusion, laplacian_eigenvalues


def coordinates(grid):
    y = torch.linspace(0, 1, grid.shape[0], dtype=torch.float64)[:, None]
    x = torch.linspace(0, 1, grid.shape[1], dtype=torch.float64)[None]
    return y.expand(grid.shape), x.expand(grid.shape)


def inside(field):
    return field[..., 1:-1, 1:-1]


@pytest.mark.parametrize("grid", [Grid((8, 8)), Grid((9, 14))], ids=str)
def test_the_stencil_is_exact_on_cubics_and_for_a_linear_coefficient_on_quadratics(grid):
    y, x = coordinates(grid)
    cubic = y**3 - 2 * x**3 + 3 * y**2 * x + x * y - 1
    expected = inside(6 * y - 12 * x + 6 * x)
    torch.testing.assert_close(diffusion(cubic[None])[0], expected, rtol=1e-9, atol=1e-9)
    a, quadratic = 1 + 2 * y + 3 * x, y**2 - 3 * x**2 + x
    expected = inside(2 * (2 * y) + 3 * (1 - 6 * x) + a * (2 - 6))
    found = diffusion(quadratic[None], a[None])[0]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def analytic_case(grid):
    """div(a grad u) for a = 2 + sin(2y) cos(3x), u = exp(y) sin(pi x)."""
    y, x = coordinates(grid)
    a = 2 + torch.sin(2 * y) * torch.cos(3 * x)
    a_y, a_x = 2 * torch.cos(2 * y) * torch.cos(3 * x), -3 * torch.sin(2 * y) * torch.sin(3 * x)
    u = torch.exp(y) * torch.sin(math.pi * x)
    u_y, u_x = u, math.pi * torch.exp(y) * torch.cos(math.pi * x)
    laplace = (1 - math.pi**2) * u
    return a, u, a_y * u_y + a_x * u_x + a * laplace


@pytest.mark.parametrize("shapes", [((17, 17), (33, 33)), ((17, 33), (33, 65))])
def test_the_stencil_is_of_second_order_with_a_variable_coefficient(shapes):
    errors = []
    for shape in shapes:
        a, u, expected = analytic_case(Grid(shape))
        errors.append(float((diffusion(u[None], a[None])[0] - inside(expected)).abs().max()))
    assert errors[1] < 0.01 * float(expected.abs().max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_one_node_by_hand():
    """Rows and columns differ in spacing and coefficient, so that no two can be mixed up."""
    grid = Grid((9, 17))
    u = torch.zeros(1, *grid.shape, dtype=torch.float64)
    a = torch.ones(1, *grid.shape, dtype=torch.float64)
    u[0, 3, 4], a[0, 3, 4] = 1.0, 3.0
    a[0, 2, 4], a[0, 3, 5] = 5.0, 7.0
    got = diffusion(u, a)[0]
    up, down, right, left = (3 + 5) / 2, (3 + 1) / 2, (3 + 7) / 2, (3 + 1) / 2
    assert got[2, 3] == pytest.approx(-(up + down) * 8**2 - (right + left) * 16**2)
    assert got[1, 3] == pytest.approx(up * 8**2)
    assert got[3, 3] == pytest.approx(down * 8**2)
    assert got[2, 4] == pytest.approx(right * 16**2)
    assert got[2, 2] == pytest.approx(left * 16**2)


def test_the_operator_is_symmetric_and_negative(generator):
    a = torch.rand(3, 12, 15, dtype=torch.float64, generator=generator) + 0.1
    u, v = torch.zeros(2, 3, 12, 15, dtype=torch.float64)
    inside(u)[:] = torch.randn(3, 10, 13, dtype=torch.float64, generator=generator)
    inside(v)[:] = torch.randn(3, 10, 13, dtype=torch.float64, generator=generator)
    one = (inside(v) * diffusion(u, a)).sum((1, 2))
    two = (inside(u) * diffusion(v, a)).sum((1, 2))
    torch.testing.assert_close(one, two)
    assert bool(((inside(u) * diffusion(u, a)).sum((1, 2)) < 0).all())


@pytest.mark.parametrize("grid", [Grid((8, 8)), Grid((8, 11))], ids=str)
def test_eigenvalues_are_those_of_the_dense_matrix(grid):
    size = (grid.shape[0] - 2) * (grid.shape[1] - 2)
    units = torch.zeros(size, *grid.shape, dtype=torch.float64)
    inside(units)[:] = torch.eye(size, dtype=torch.float64).reshape(
        size, grid.shape[0] - 2, grid.shape[1] - 2
    )
    matrix = diffusion(units).reshape(size, size)
    expected = torch.linalg.eigvalsh(matrix)
    got = laplacian_eigenvalues(grid, torch.device("cpu")).flatten().sort().values
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-8)
