import pytest
import torch
from torch import nn

from twoscale.networks import FieldEncoder, FieldMap, FNO2d, resample, work_shape


class Recorder(nn.Module):
    """Doubles its fields and remembers them."""

    def forward(self, fields):
        self.seen = fields
        return 2 * fields


def test_the_work_grid_has_the_larger_sides():
    assert work_shape((4, 9), (8, 3)) == (8, 9)
    assert FieldMap(nn.Identity(), (4, 9), (8, 3)).work_shape == (8, 9)


def test_between_equal_grids_the_network_works_alone(generator):
    fields = torch.randn(2, 3, 5, 6, generator=generator)
    network = Recorder()
    image = FieldMap(network, (5, 6), (5, 6))(fields)
    assert network.seen is fields
    assert torch.equal(image, 2 * fields)


def test_the_network_works_between_two_interpolations(generator):
    fields = torch.randn(2, 3, 4, 9, dtype=torch.float64, generator=generator)
    network = Recorder()
    image = FieldMap(network, (4, 9), (8, 3), (True, False), (False, True))(fields)
    expected = resample(fields, (8, 9), (True, False))
    assert torch.equal(network.seen, expected)
    assert torch.equal(image, resample(2 * expected, (8, 3), (False, True)))


def test_parameters_become_constant_fields(generator):
    parameters = torch.randn(2, 3, 1, 1, generator=generator)
    network = Recorder()
    FieldMap(network, (1, 1), (4, 6))(parameters)
    assert torch.equal(network.seen, parameters.expand(2, 3, 4, 6))


@pytest.mark.parametrize("shapes", [((17, 23), (16, 16)), ((1, 1), (12, 20)), ((1, 64), (8, 32))])
@pytest.mark.parametrize("kind", ["fno", "encoder"])
def test_networks_between_different_grids(shapes, kind, generator):
    shape = work_shape(*shapes)
    if kind == "fno":
        network = FNO2d(2, 3, width=4, modes=3, head=8, layers=1, shape=shape)
    else:
        network = FieldEncoder(shape, channels_in=2, channels_out=3, width=4, blocks=1)
    image = FieldMap(network, *shapes)(torch.randn(5, 2, *shapes[0], generator=generator))
    assert image.shape == (5, 3, *shapes[1])
