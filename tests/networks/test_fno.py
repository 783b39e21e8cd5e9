import numpy as np
import pytest
import torch
from torch.nn import functional

from twoscale import TwoscaleError
from twoscale.networks import FNO2d
from twoscale.networks.fno import FourierConvolution, Pointwise, usable_modes


class Spectral:
    """The convolution alone, without its bypass, on (batch, channels, height, width)."""

    def __init__(self, channels, modes):
        self.layer = FourierConvolution(channels, (modes, modes)).double()
        for parameter in self.layer.bypass.parameters():
            parameter.data.zero_()

    def __call__(self, x):
        return self.layer(x.movedim(1, -1).contiguous()).movedim(-1, 1)

    @property
    def weights(self):
        return complex_weights(self.layer)


def complex_weights(layer):
    """Return a layer's weights as (corner, channels in, channels out, rows, columns)."""
    apart = layer.weights.detach().unflatten(0, (2, -1)).permute(0, 3, 5, 1, 2, 4)
    return torch.view_as_complex(apart.contiguous())


def make_convolution(channels=3, modes=4, *, seed=0):
    """A convolution in float64 with weights of both signs."""
    generator = torch.Generator().manual_seed(seed)
    convolution = Spectral(channels, modes)
    weights = convolution.layer.weights
    weights.data.copy_(torch.randn(weights.shape, dtype=torch.float64, generator=generator))
    return convolution


def kept_modes(modes, height, width):
    """The kept (row, column) frequencies with the place of their weight: corner, row, column."""
    rows = min(modes, height // 2)
    for column in range(max(1, min(modes, width // 2))):
        for row in range(max(1, rows)):
            yield row, column, (0, row, column)
        for row in range(-rows, 0):
            yield row, column, (1, modes + row, column)


def slow_convolution(x, weights, modes):
    """Analysis, channel product and synthesis as plain sums over the kept modes."""
    _, _, height, width = x.shape
    rows = np.arange(height)[:, None] / height
    columns = np.arange(width)[None] / width
    result = np.zeros_like(x)
    for k, m, (corner, i, j) in kept_modes(modes, height, width):
        wave = np.exp(2j * np.pi * (k * rows + m * columns))
        coefficient = np.einsum("bihw,hw->bi", x, wave.conj()) / (height * width)
        image = np.einsum("bi,io->bo", coefficient, weights[corner, :, :, i, j])
        # Each column frequency but zero stands for itself and its mirror image.
        share = 1 if m == 0 else 2
        result += share * np.real(image[:, :, None, None] * wave)
    return result


# Also on sides that have fewer modes, even and odd, down to a single node.
SUMS = [((12, 12), 4), ((13, 10), 3), ((8, 16), 1)]
SUMS += [((8, 8), 5), ((7, 9), 6), ((1, 12), 4), ((12, 1), 4), ((2, 3), 2), ((1, 1), 3)]


@pytest.mark.parametrize(("shape", "modes"), SUMS)
def test_the_convolution_is_the_sum_over_kept_modes(shape, modes, generator):
    convolution = make_convolution(3, modes)
    x = torch.randn(2, 3, *shape, dtype=torch.float64, generator=generator)
    expected = slow_convolution(x.numpy(), convolution.weights.numpy(), modes)
    np.testing.assert_allclose(convolution(x).detach().numpy(), expected, atol=1e-10)


def test_a_side_has_half_as_many_modes_as_nodes():
    assert [usable_modes(side, 4) for side in (1, 2, 3, 5, 8, 9, 64)] == [1, 1, 1, 2, 4, 4, 4]


@pytest.mark.parametrize("shape", [(8, 9), (3, 5), (1, 6)])
def test_gradients_of_the_convolution(shape, generator):
    layer = FourierConvolution(2, (2, 3)).double()
    x = torch.randn(2, *shape, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def image(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(image, (x, *layer.parameters()))


def test_second_derivatives_of_the_convolution_are_refused(generator):
    """They would be wrong: the gradient is written out once."""
    layer = FourierConvolution(2, (2, 2))
    x = torch.randn(1, 8, 8, 2, generator=generator, requires_grad=True)
    (slope,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_gradients_of_the_pointwise_map(generator):
    layer = Pointwise(3, 2).double()
    x = torch.randn(2, 4, 5, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    torch.testing.assert_close(layer(x), functional.linear(x, layer.weight, layer.bias))

    def image(x, weight, bias):
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))

    assert torch.autograd.gradcheck(image, (x, layer.weight, layer.bias))


# The network


def test_shapes_on_any_grid(generator):
    network = FNO2d(2, 3, width=4, modes=12, head=8, layers=2)
    for shape in ((16, 16), (17, 23), (1, 64), (64, 1), (1, 1)):
        fields = torch.randn(2, 2, *shape, generator=generator)
        assert network(fields).shape == (2, 3, *shape)


@torch.no_grad()
def test_the_network_by_hand(generator):
    """Coordinates appended, padding at the far edges, GELU after every layer, two-layer head."""
    network = FNO2d(width=5, modes=3, head=7, layers=2, padding=4, seed=1).double()
    fields = torch.randn(2, 1, 10, 12, dtype=torch.float64, generator=generator)
    rows = torch.arange(10, dtype=torch.float64) / 9
    columns = torch.arange(12, dtype=torch.float64) / 11
    places = [rows[:, None].expand(2, 1, 10, 12), columns[None].expand(2, 1, 10, 12)]
    x = torch.cat([fields, *places], dim=1)

    def pointwise(layer, values):
        image = torch.einsum("oi,bihw->bohw", layer.weight, values)
        return image + layer.bias[:, None, None]

    padded = torch.zeros(2, 5, 14, 16, dtype=torch.float64)
    padded[:, :, :10, :12] = pointwise(network.lift, x)
    for layer in network.layers:
        image = slow_convolution(padded.numpy(), complex_weights(layer).numpy(), 3)
        padded = functional.gelu(torch.from_numpy(image) + pointwise(layer.bypass, padded))
    head = functional.gelu(pointwise(network.head[0], padded[:, :, :10, :12]))
    expected = pointwise(network.head[2], head)
    torch.testing.assert_close(network(fields), expected)


def test_fields_of_other_channels_are_refused():
    with pytest.raises(TwoscaleError, match="2 channels, got 3"):
        FNO2d(2, width=4, layers=1)(torch.zeros(1, 3, 20, 20))


@torch.no_grad()
def test_modes_that_a_grid_lacks_need_no_weights(generator):
    """The weights that remain do the same as among all of them."""
    sizes = {"width": 4, "head": 8, "layers": 2, "padding": 0}
    every, few = FNO2d(**sizes), FNO2d(**sizes, shape=(6, 32))
    assert few.layers[0].weights.shape[:2] == (6, 12)
    few.load_state_dict(
        {
            name: torch.cat([value[:3], value[-3:]]) if name.endswith(".weights") else value
            for name, value in every.state_dict().items()
        }
    )
    fields = torch.randn(2, 1, 6, 32, generator=generator)
    torch.testing.assert_close(few(fields), every(fields))
    assert FNO2d(**sizes, shape=(1, 64)).layers[0].weights.shape[:2] == (2, 12)
    assert FNO2d(**sizes, modes=(3, 5)).layers[0].weights.shape[:2] == (6, 5)


@pytest.mark.parametrize(
    ("periodic", "shift", "coordinates"),
    [((True, False), (5, 0), 3), ((False, True), (0, 1), 3), ((True, True), (4, 9), 4)],
)
@pytest.mark.parametrize("shape", [(16, 16), (17, 23), (12, 1)])
@torch.no_grad()
def test_only_coordinates_tell_places_of_a_periodic_axis_apart(
    shape, periodic, shift, coordinates, generator
):
    """A periodic axis has a cosine and a sine as coordinates; here nothing is read of any."""
    network = FNO2d(2, 3, width=4, head=8, layers=2, periodic=periodic).double()
    assert network.lift.in_features == 2 + coordinates
    network.lift.weight[:, 2:] = 0
    fields = torch.randn(2, 2, *shape, dtype=torch.float64, generator=generator)
    moved = network(fields.roll(shift, (2, 3)))
    torch.testing.assert_close(moved, network(fields).roll(shift, (2, 3)))
