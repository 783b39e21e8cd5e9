import pytest
import torch

from twoscale.networks import DenseNetwork


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


@pytest.mark.parametrize("sizes", [(3, 4), (3, 5, 4), (3, 5, 6, 4)])
def test_followed_by_a_matrix(sizes, generator):
    network = DenseNetwork(sizes, seed=1)
    matrix = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    x = torch.randn(6, 3, generator=generator)
    with torch.no_grad():
        expected = network(x) @ matrix.float()
        torch.testing.assert_close(network.followed_by(matrix)(x), expected)
        assert network(x).shape == (6, 4)
