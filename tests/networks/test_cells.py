import pytest
import torch
from torch.nn import functional

from twoscale import TwoscaleError
from twoscale.networks.field_encoder import (
    CellAxis,
    coarse_cut,
    divide,
    from_cells,
    to_cells,
    usual_cut,
)

USUAL_CUTS = {1: 1, 4: 1, 7: 1, 8: 2, 16: 2, 32: 2, 64: 2, 127: 4, 128: 4, 129: 4, 255: 8, 256: 8}
USUAL_CUTS |= {257: 8, 511: 16, 512: 16, 1023: 32, 1024: 32}


def axis(side, cut=None, *, periodic=False):
    """Divide one side."""
    rows, _ = divide((side, 1), (cut or usual_cut(side), 1), (periodic, False))
    return rows


@pytest.mark.parametrize(("side", "cut"), USUAL_CUTS.items())
def test_cells_leave_about_32_per_direction(side, cut):
    assert usual_cut(side) == cut


def test_the_finest_level_never_has_many_more_cells_than_32():
    assert all(22 < side / usual_cut(side) < 46 for side in range(46, 2000))


def test_ordinary_axes_are_filled_up_by_less_than_a_coarsest_cell():
    for side in range(1, 700):
        one = axis(side)
        assert 0 <= one.nodes - side < one.cut * 2**one.halvings, side
        assert one.coarsest << one.halvings == one.cells, side
        assert one.coarsest <= 8, side
        assert one.coarsest >= 4 or one.halvings == 0, side


def test_periodic_axes_are_exact_or_as_ordinary_ones():
    for side in range(1, 700):
        ordinary, periodic = axis(side), axis(side, periodic=True)
        assert periodic == ordinary or ordinary.nodes > side == periodic.nodes, side
        assert periodic.coarsest << periodic.halvings == periodic.cells, side
        assert periodic.coarsest <= 32, side


def test_periodic_axes_are_cut_where_their_nodes_fill_whole_cells():
    assert axis(64, periodic=True) == CellAxis(2, 32, 3)
    assert axis(30, periodic=True) == CellAxis(3, 10, 1)
    assert axis(100, periodic=True) == CellAxis(5, 20, 2)
    assert axis(17, periodic=True) == CellAxis(1, 17, 0)
    assert axis(30, 5, periodic=True) == CellAxis(5, 6, 0)


def test_large_primes_are_filled_up_even_if_periodic():
    assert axis(421, periodic=True) == axis(421) == CellAxis(16, 28, 2)


def test_a_cut_never_exceeds_its_side():
    assert axis(1, 8) == CellAxis(1, 1, 0)
    assert axis(3, 8, periodic=True) == CellAxis(3, 1, 0)


def test_cells_of_no_nodes_are_refused():
    with pytest.raises(TwoscaleError, match="at least one node"):
        divide((8, 8), (-1, 2), (False, False))


@pytest.mark.parametrize("cuts", [(2, 2), (1, 4), (3, 2)])
def test_fields_become_cells_and_fields_again(cuts, generator):
    fields = torch.randn(2, 3, 12, 8, generator=generator)
    axes = divide((12, 8), cuts, (True, True))
    cells = to_cells(fields, axes).movedim(-1, 1)
    assert cells.shape == (2, 3 * cuts[0] * cuts[1], 12 // cuts[0], 8 // cuts[1])
    assert torch.equal(from_cells(cells, axes), fields)


def test_channels_are_in_the_order_of_pixel_unshuffle(generator):
    fields = torch.randn(2, 3, 12, 8, generator=generator)
    axes = divide((12, 8), (2, 2), (True, True))
    cells = to_cells(fields, axes).movedim(-1, 1)
    assert torch.equal(cells, functional.pixel_unshuffle(fields, 2))
    assert torch.equal(from_cells(cells, axes), functional.pixel_shuffle(cells, 2))


def test_larger_cells_leave_sixteen_per_direction():
    assert [coarse_cut(side) for side in (16, 32, 63, 64, 85, 128, 421)] == [2, 2, 2, 4, 4, 4, 16]
