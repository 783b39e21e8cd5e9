import pytest
import torch
from torch.nn import functional

from twoscale import TwoscaleError
from twoscale.networks import FieldEncoder
from twoscale.networks.field_encoder import (
    CellAxis,
    _AddProducts,
    coarse_cut,
    divide,
    from_cells,
    to_cells,
    usual_cut,
)

PERIODIC = [(False, False), (True, False), (False, True), (True, True)]
MARGINS = [(0, 0), (1, 0), (0, 1), (1, 1)]
SHAPES = [(32, 32), (16, 48), (17, 23), (4, 4), (128, 64), (1, 64), (30, 200), (64, 1), (1, 1)]


def fields(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def past_the_start(network):
    """Return the network with random weights: at the start its blocks add nothing."""
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.2, generator=torch.Generator().manual_seed(1))
    return network


@pytest.mark.parametrize("periodic", PERIODIC)
@pytest.mark.parametrize("shape", SHAPES)
def test_fields_of_any_shape_become_fields_of_that_shape(shape, periodic):
    network = FieldEncoder(
        shape, channels_in=2, channels_out=3, width=4, blocks=1, periodic=periodic
    )
    assert network(fields(2, 2, *shape)).shape == (2, 3, *shape)


def test_coordinates_along_ordinary_axes_only():
    for periodic, coordinates in zip(PERIODIC, (2, 1, 1, 0), strict=True):
        network = FieldEncoder((16, 16), channels_in=3, width=4, blocks=1, periodic=periodic)
        assert network.lift.in_channels == 3 * 4 + coordinates


def test_a_node_matters_everywhere():
    network = past_the_start(FieldEncoder((32, 32), channels_in=2, width=4, blocks=1)).double()
    x = fields(1, 2, 32, 32).double()
    changed = x.clone()
    changed[0, 1, 13, 27] += 1.0
    with torch.no_grad():
        difference = network(changed) - network(x)
    assert float(difference.abs().min()) > 0


@pytest.mark.parametrize("periodic", PERIODIC)
@pytest.mark.parametrize("shape", [(16, 16), (8, 40)])
def test_the_gradient_reaches_every_weight(shape, periodic):
    network = FieldEncoder(shape, width=4, blocks=1, cycles=2, periodic=periodic)
    past_the_start(network)(fields(2, 1, *shape)).square().sum().backward()
    assert all(float(p.grad.abs().max()) > 0 for p in network.parameters())


@pytest.mark.parametrize("periodic", PERIODIC[1:])
@pytest.mark.parametrize(("shape", "cells"), [((32, 32), (8, 8)), ((30, 16), (6, 4))])
@torch.no_grad()
def test_all_but_the_mixing_of_places_commutes_with_shifts(shape, cells, periodic):
    """Shifts by coarsest cells, along periodic axes."""
    network = FieldEncoder(shape, channels_in=2, width=4, blocks=1, periodic=periodic)
    network = past_the_start(network).double()
    for mixing in network.cycles[0].mixings:
        for parameter in mixing.places.parameters():
            parameter.zero_()
    x = fields(2, 2, *shape).double()
    shift = [side * wraps for side, wraps in zip(cells, periodic, strict=True)]
    moved = network(x.roll(shift, (2, 3)))
    torch.testing.assert_close(moved, network(x).roll(shift, (2, 3)))


def parts_of_a_block(kernel, inside, shape):
    """Return cells and both weights, in double precision and with gradients."""
    cells = fields(2, 4, *shape).double().contiguous(memory_format=torch.channels_last)
    factors = fields(8 * inside, 4, kernel, kernel, seed=1).double()
    mix = fields(4, 4 * inside, 1, 1, seed=2).double()
    return [x.requires_grad_() for x in (cells, factors, mix)]


@pytest.mark.parametrize(
    ("kernel", "inside", "shape", "margins"),
    [
        *((3, 1, shape, margins) for shape in ((6, 5), (1, 3)) for margins in MARGINS),
        (1, 2, (6, 5), (0, 0)),  # within cells
    ],
)
def test_the_gradient_of_a_block_is_that_of_its_formula(kernel, inside, shape, margins):
    given = parts_of_a_block(kernel, inside, shape)
    cells, factors, mix = given
    unit = cells * torch.rsqrt(cells.square().mean((1, 2, 3), keepdim=True))
    rows, columns = (
        torch.arange(-margin, side + margin) % side
        for margin, side in zip(margins, cells.shape[2:], strict=True)
    )
    zeros = [factors.shape[-1] // 2 - margin for margin in margins]
    wide = unit[:, :, rows][..., columns]
    p, q = functional.conv2d(wide, factors, padding=zeros).chunk(2, 1)
    plain = cells + functional.conv2d(p + p * q, mix)
    ours = _AddProducts.apply(*given, margins)
    torch.testing.assert_close(ours, plain)
    weights = fields(*plain.shape, seed=3).double()
    grads = torch.autograd.grad((plain * weights).sum(), given)
    torch.testing.assert_close(torch.autograd.grad((ours * weights).sum(), given), grads)


# How a grid is cut into cells

USUAL_CUTS = {1: 1, 4: 1, 7: 1, 8: 2, 16: 2, 32: 2, 64: 2, 127: 4, 128: 4, 129: 4, 255: 8, 256: 8}
USUAL_CUTS |= {257: 8, 511: 16, 512: 16, 1023: 32, 1024: 32}


def axis(side, cut=None, *, periodic=False):
    """Divide one side."""
    rows, _ = divide((side, 1), (cut or usual_cut(side), 1), (periodic, False))
    return rows


def test_cells_leave_about_32_per_direction_and_larger_ones_16():
    assert {side: usual_cut(side) for side in USUAL_CUTS} == USUAL_CUTS
    assert [coarse_cut(side) for side in (16, 32, 63, 64, 85, 128, 421)] == [2, 2, 2, 4, 4, 4, 16]


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
    # A large prime is filled up.
    assert axis(421, periodic=True) == axis(421) == CellAxis(16, 28, 2)


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
    if cuts == (2, 2):
        assert torch.equal(cells, functional.pixel_unshuffle(fields, 2))
