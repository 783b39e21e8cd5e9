import pytest
import torch
from torch.nn import functional

from twoscale.networks import RefinementNet
from twoscale.networks.periodic import GridConvolution, fold, trim, wrap

GRIDS = [(6, 5), (2, 7), (1, 4), (1, 1)]


def fields(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("margins", [(0, 0), (2, 0), (0, 2), (2, 2), (1, 3)])
def test_nodes_beyond_an_edge_are_those_of_the_other_edge(shape, margins):
    x = fields(2, 3, *shape)
    rows, columns = (
        torch.arange(-margin, side + margin) % side
        for margin, side in zip(margins, shape, strict=True)
    )
    wide = wrap(x, margins)
    assert torch.equal(wide, x[:, :, rows][..., columns])
    assert torch.equal(trim(wide, margins), x)


def test_channels_stay_last_in_memory():
    x = fields(2, 3, 6, 5).contiguous(memory_format=torch.channels_last)
    assert wrap(x, (1, 1)).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("margins", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fold_is_the_transpose_of_wrap(shape, margins):
    x = fields(2, 3, *shape).requires_grad_()
    wide = wrap(x, margins)
    weights = fields(*wide.shape, seed=1)
    (expected,) = torch.autograd.grad((wide * weights).sum(), x)
    torch.testing.assert_close(fold(weights.clone(), margins), expected)


@pytest.mark.parametrize("shape", GRIDS)
def test_a_convolution_along_a_periodic_axis(shape):
    """Wrapped by rows, zeros beyond the columns."""
    layer = GridConvolution(3, 2, 5, (True, False)).double()
    x = fields(2, 3, *shape)
    tall = x[:, :, torch.arange(-2, shape[0] + 2) % shape[0]]
    expected = functional.conv2d(tall, layer.weight, layer.bias, padding=(0, 2))
    torch.testing.assert_close(layer(x), expected)


def test_the_formula(generator):
    network = RefinementNet(2, channels=3, layers=2, seed=4)
    first, _, last = network.layers
    fields = torch.randn(2, 2, 9, 11, generator=generator)
    hidden = functional.conv2d(fields, first.weight, first.bias, padding=2).clamp_min(0)
    expected = functional.conv2d(hidden, last.weight, last.bias, padding=2)
    torch.testing.assert_close(network(fields), expected)


@pytest.mark.parametrize("shape", [(9, 12), (3, 2), (1, 7)])
@pytest.mark.parametrize(("periodic", "shift"), [((True, False), (2, 0)), ((True, True), (1, 5))])
@torch.no_grad()
def test_it_commutes_with_shifts_along_periodic_axes(shape, periodic, shift, generator):
    network = RefinementNet(2, channels=4, periodic=periodic).double()
    fields = torch.randn(2, 2, *shape, dtype=torch.float64, generator=generator)
    moved = network(fields.roll(shift, (2, 3)))
    torch.testing.assert_close(moved, network(fields).roll(shift, (2, 3)))
