import pytest
import torch
from torch import nn

from twoscale.networks import DenseNetwork, count_parameters


def test_layers_alternate_and_end_without_activation():
    kinds = [type(layer) for layer in DenseNetwork((3, 5, 4, 2))]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]


def test_without_hidden_layers_it_is_affine():
    network = DenseNetwork((3, 2))
    assert [type(layer) for layer in network] == [nn.Linear]


def test_parameter_count():
    assert count_parameters(DenseNetwork((3, 5, 2))) == (3 * 5 + 5) + (5 * 2 + 2)


def test_formula():
    network = DenseNetwork((2, 3, 1), seed=4)
    first, _, last = network
    x = torch.tensor([[0.3, -1.2]])
    hidden = (x @ first.weight.T + first.bias).clamp_min(0)
    torch.testing.assert_close(network(x), hidden @ last.weight.T + last.bias)


def test_the_seed_decides_the_weights_and_nothing_else_does():
    torch.manual_seed(1)
    one = DenseNetwork((4, 8, 2), seed=3).state_dict()
    torch.manual_seed(2)
    two = DenseNetwork((4, 8, 2), seed=3).state_dict()
    other = DenseNetwork((4, 8, 2), seed=4).state_dict()
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not torch.equal(one["0.weight"], other["0.weight"])


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    DenseNetwork((4, 8, 2), seed=3)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("sizes", [(3, 4), (3, 5, 4), (3, 5, 6, 4)])
def test_followed_by_a_matrix(sizes, generator):
    network = DenseNetwork(sizes, seed=1)
    matrix = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    x = torch.randn(6, 3, generator=generator)
    with torch.no_grad():
        expected = network(x) @ matrix.float()
        torch.testing.assert_close(network.followed_by(matrix)(x), expected)
        assert network(x).shape == (6, 4)
