"""Cell means and their interpolation on grids of any size."""

import numpy as np
import pytest
import torch

from tests.representation.contract import relative, worst_channel
from tests.spaces import poisson_fields
from twoscale import RestrictedPCA
from twoscale.domain.cuts import Axis, Cuts, _interpolation, _means
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.representation.field_pca import _cells

CELLS = [(17, 4), (23, 6), (97, 24), (101, 25), (85, 21), (32, 8), (5, 1), (7, 3), (1, 1)]
any_cells = pytest.mark.parametrize(("size", "count"), CELLS)
any_wrap = pytest.mark.parametrize("periodic", [False, True])


def centres(cells):
    starts, sides = torch.tensor(cells.starts), torch.tensor(cells.sides)
    return starts + (sides.double() - 1) / 2


@pytest.mark.parametrize(
    ("side", "factor", "cells"),
    [(32, 4, 8), (97, 4, 24), (98, 4, 25), (101, 4, 25), (17, 4, 4), (1, 4, 1), (5, 8, 1)],
)
def test_there_are_about_as_many_cells_as_the_factor_says(side, factor, cells):
    assert _cells(Grid((side,)), factor) == (cells,)


@any_cells
@any_wrap
def test_cell_means_by_hand(size, count, periodic, generator):
    cells = Cuts.equal(Axis(size, periodic), count)
    values = torch.randn(size, dtype=torch.float64, generator=generator)
    bounds = zip(cells.starts, cells.sides, strict=True)
    expected = torch.stack([values[start : start + side].mean() for start, side in bounds])
    torch.testing.assert_close(_means(cells) @ values, expected)


@any_cells
@any_wrap
def test_constants_come_back(size, count, periodic):
    cells = Cuts.equal(Axis(size, periodic), count)
    ones = torch.ones(size, dtype=torch.float64)
    torch.testing.assert_close(_means(cells) @ ones, ones[:count], rtol=0, atol=1e-15)
    matrix = _interpolation(cells)
    torch.testing.assert_close(matrix @ ones[:count], ones, rtol=0, atol=1e-15)
    assert float(matrix.min()) >= 0


@any_cells
def test_linear_functions_come_back_between_the_centres(size, count):
    """Beyond the outermost centres they stay as they are there."""
    cells = Cuts.equal(Axis(size), count)
    nodes = torch.arange(size).double()
    found = _interpolation(cells) @ (_means(cells) @ (3 - 2 * nodes))
    middle = centres(cells)
    torch.testing.assert_close(found, 3 - 2 * nodes.clamp(middle[0], middle[-1]))


@any_cells
def test_interpolation_wraps_along_a_periodic_axis(size, count):
    """Between the last centre and the first of the next period it is linear, too."""
    cells = Cuts.equal(Axis(size, True), count)
    middle = centres(cells)
    values = torch.randn(count, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    period = torch.cat([middle - size, middle, middle + size]).numpy()
    nodes = torch.arange(size).double().numpy()
    expected = torch.from_numpy(np.interp(nodes, period, values.repeat(3).numpy()))
    torch.testing.assert_close(_interpolation(cells) @ values, expected)


@pytest.mark.parametrize(("shape", "factor"), [((32, 32), 4), ((16, 32), 4), ((18, 24), 3)])
def test_where_sides_divide_it_is_pooling_and_bilinear_interpolation(shape, factor):
    """Both ways of the computation agree to rounding."""
    fields = poisson_fields(shape, 150)
    pooled = RestrictedPCA(10, factor=factor, few_features=False).fit(fields)
    assert pooled.cells._side
    expected = pooled._split(fields), pooled.decode(pooled.encode(fields))
    pooled.cells._side = 0
    assert relative(pooled._split(fields) - expected[0], expected[0]) < 1e-6
    assert relative(pooled.decode(pooled.encode(fields)) - expected[1], expected[1]) < 1e-5


@pytest.mark.parametrize(
    "grid",
    [
        Grid((17, 23)),
        Grid((1, 64)),
        Grid((32, 30), periodic=(True, False)),
        Grid((17, 16), periodic=(True, True)),
    ],
)
def test_constant_fields_come_back(grid, generator):
    """Fields that are constants, each another one, on any grid."""
    constants = (
        torch.randn(60, 2, 1, 1, generator=generator) * torch.tensor([1.0, 1e6])[:, None, None]
    )
    fields = constants.expand(-1, -1, *grid.shape).contiguous()
    fitted = RestrictedPCA(2, few_features=False).fit(fields, space=Space(grid, 2))
    assert worst_channel(fitted(fields), fields) < 5e-6  # rounding errors of the code
