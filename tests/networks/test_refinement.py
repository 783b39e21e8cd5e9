import pytest
import torch
from torch import nn
from torch.nn import functional

from twoscale.networks import RefinementNet, count_parameters


@pytest.mark.parametrize("shape", [(8, 8), (16, 12), (9, 31)])
def test_the_shape_is_kept(shape, generator):
    network = RefinementNet(channels=4)
    assert network(torch.randn(3, *shape, generator=generator)).shape == (3, *shape)


@pytest.mark.parametrize(("channels", "layers"), [(32, 4), (5, 2), (3, 6)])
def test_parameter_count(channels, layers):
    first = 25 * channels + channels
    inner = 25 * channels * channels + channels
    last = 25 * channels + 1
    network = RefinementNet(channels=channels, layers=layers)
    assert count_parameters(network) == first + (layers - 2) * inner + last


def test_four_convolutions_with_relu_between_them():
    kinds = [type(layer) for layer in RefinementNet().layers]
    assert kinds == [nn.Conv2d, nn.ReLU] * 3 + [nn.Conv2d]
    assert all(
        layer.kernel_size == (5, 5) for layer in RefinementNet().layers if hasattr(layer, "weight")
    )


def test_without_a_skip_zero_weights_give_the_last_bias(generator):
    network = RefinementNet(channels=4)
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    fields = torch.randn(2, 10, 10, generator=generator)
    assert torch.equal(network(fields), torch.zeros_like(fields))
    nn.init.constant_(network.layers[-1].bias, 0.5)
    assert torch.equal(network(fields), torch.full_like(fields, 0.5))


def test_the_formula(generator):
    network = RefinementNet(channels=3, layers=2, seed=4)
    first, _, last = network.layers
    fields = torch.randn(2, 9, 11, generator=generator)
    hidden = functional.conv2d(fields[:, None], first.weight, first.bias, padding=2).clamp_min(0)
    expected = functional.conv2d(hidden, last.weight, last.bias, padding=2)[:, 0]
    torch.testing.assert_close(network(fields), expected)


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
