import pytest
import torch
from torch import nn
from torch.nn import functional

from twoscale.networks import RefinementNet, count_parameters


@pytest.mark.parametrize("periodic", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("shape", [(8, 8), (9, 31), (1, 64), (2, 2), (1, 1)])
def test_the_shape_is_kept(shape, periodic, generator):
    network = RefinementNet(2, channels=4, periodic=periodic)
    fields = torch.randn(3, 2, *shape, generator=generator)
    assert network(fields).shape == fields.shape


@pytest.mark.parametrize(("channels", "layers"), [(32, 4), (5, 2), (3, 6)])
@pytest.mark.parametrize("field_channels", [1, 3])
def test_parameter_count(channels, layers, field_channels):
    first = 25 * field_channels * channels + channels
    inner = 25 * channels * channels + channels
    last = 25 * channels * field_channels + field_channels
    network = RefinementNet(field_channels, channels=channels, layers=layers)
    assert count_parameters(network) == first + (layers - 2) * inner + last


def test_four_convolutions_with_relu_between_them():
    layers = RefinementNet().layers
    assert [isinstance(layer, nn.Conv2d) for layer in layers] == [True, False] * 3 + [True]
    assert all(layer.kernel_size == (5, 5) for layer in layers[::2])
    assert all(isinstance(layer, nn.ReLU) for layer in layers[1::2])


def test_without_a_skip_zero_weights_give_the_last_bias(generator):
    network = RefinementNet(channels=4)
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    fields = torch.randn(2, 1, 10, 10, generator=generator)
    assert torch.equal(network(fields), torch.zeros_like(fields))
    nn.init.constant_(network.layers[-1].bias, 0.5)
    assert torch.equal(network(fields), torch.full_like(fields, 0.5))


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


def test_the_seed_decides_the_weights_and_leaves_the_global_state_alone():
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    one = RefinementNet(channels=4, seed=1).state_dict()
    assert torch.equal(torch.rand(2), expected)
    two = RefinementNet(channels=4, seed=1).state_dict()
    other = RefinementNet(channels=4, seed=2).state_dict()
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not torch.equal(one["layers.0.weight"], other["layers.0.weight"])
