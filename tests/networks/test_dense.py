import pytest
import torch

from twoscale.networks import DenseNetwork


def test_formula():
    network = DenseNetwork((2, 3, 1), seed=4)
    first, _, last = network
    x = torch.tensor([[0.3, -1.2]])
    hidden = (x @ first.weight.T + first.bias).clamp_min(0)
    torch.testing.assert_close(network(x), hidden @ last.weight.T + last.bias)


@pytest.mark.parametrize("sizes", [(3, 4), (3, 5, 4), (3, 5, 6, 4)])
def test_followed_by_a_matrix(sizes, generator):
    network = DenseNetwork(sizes, seed=1)
    matrix = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    x = torch.randn(6, 3, generator=generator)
    with torch.no_grad():
        expected = network(x) @ matrix.float()
        torch.testing.assert_close(network.followed_by(matrix)(x), expected)
        assert network(x).shape == (6, 4)
