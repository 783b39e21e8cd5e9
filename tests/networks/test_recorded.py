"""Numbers of the networks on one channel, recorded when fields had no channel axis yet."""

import pytest
import torch

from twoscale.networks import DenseNetwork, FieldEncoder, FNO2d, RefinementNet

# By network: side, sum of all weights, two nodes, root mean square, norm of the gradient.
RECORDED = {
    "fno": (64, 570.35320536, 0.1214315295, 0.1191351563, 0.1204272167, 3354.27937487),
    "refinement": (20, -1.14861194, -0.1142077744, 0.0312162004, 0.0891937476, 181.59053138),
    "encoder": (32, 5.51233965, 0.1133931652, -0.0187151469, 0.4486392919, 1368.09886240),
    "filled": (17, 7.00948155, 0.3964466453, 0.8915295005, 0.5608373486, 593.23590888),
}


def make(name, side):
    if name == "fno":
        return FNO2d(width=8, layers=2, seed=3)
    if name == "refinement":
        return RefinementNet(channels=8, seed=3)
    return FieldEncoder((side, side), width=8, blocks=1, seed=3)


@pytest.mark.parametrize("name", RECORDED)
def test_one_channel_gives_the_recorded_numbers(name):
    side, weights, first, last, size, steepness = RECORDED[name]
    generator = torch.Generator().manual_seed(0)
    network = make(name, side)
    parameters = list(network.parameters())
    assert sum(float(p.detach().double().sum()) for p in parameters) == pytest.approx(weights)
    for parameter in parameters:
        parameter.data.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    image = network(torch.randn(2, 1, side, side, generator=generator))
    image.square().sum().backward()
    image = image.detach()[:, 0]
    assert float(image[0, 3, 5]) == pytest.approx(first, rel=1e-4)
    assert float(image[1, -1, -1]) == pytest.approx(last, rel=1e-4)
    assert float(image.square().mean().sqrt()) == pytest.approx(size, rel=1e-5)
    norm = sum(float(p.grad.double().square().sum()) for p in parameters) ** 0.5
    assert norm == pytest.approx(steepness, rel=1e-4)


MAKE = {
    "dense": lambda seed: DenseNetwork((4, 8, 2), seed=seed),
    "fno": lambda seed: FNO2d(width=4, modes=3, layers=1, seed=seed),
    "refinement": lambda seed: RefinementNet(channels=4, seed=seed),
    "encoder": lambda seed: FieldEncoder((16, 16), width=4, seed=seed),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_the_seed_decides_the_weights_and_leaves_the_global_state_alone(make):
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    one, two, other = (make(seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(2), expected)
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)
