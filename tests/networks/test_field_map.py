import numpy as np
import pytest
import torch
from torch import nn

from twoscale.networks import Committee, FieldEncoder, FieldMap, FNO2d, resample, work_shape
from twoscale.networks.field_map import interpolate_cubic


class Recorder(nn.Module):
    """Doubles its fields and remembers them."""

    def forward(self, fields):
        self.seen = fields
        return 2 * fields


def test_between_equal_grids_the_network_works_alone(generator):
    fields = torch.randn(2, 3, 5, 6, generator=generator)
    network = Recorder()
    image = FieldMap(network, (5, 6), (5, 6))(fields)
    assert network.seen is fields
    assert torch.equal(image, 2 * fields)


def test_the_network_works_between_two_interpolations(generator):
    fields = torch.randn(2, 3, 4, 9, dtype=torch.float64, generator=generator)
    network = Recorder()
    assert work_shape((4, 9), (8, 3)) == (8, 9)
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


def test_the_mean_of_all_members():
    members = [FieldEncoder((8, 8), width=4, seed=seed) for seed in (0, 1)]
    committee = Committee(members)
    x = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        each = committee.each(x)
        assert each.shape == (2, 3, 1, 8, 8)
        torch.testing.assert_close(each[1], members[1](x))
        torch.testing.assert_close(committee(x), (members[0](x) + members[1](x)) / 2)


ALONG_ROWS, ALONG_BOTH = (True, False), (True, True)


def random_fields(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def bilinear(shape):
    """The function 1 + 2 y - 3 x + x y at the nodes of the unit square."""
    y, x = (torch.linspace(0, 1, side, dtype=torch.float64) for side in shape)
    return 1 + 2 * y[:, None] - 3 * x + y[:, None] * x


def cubic(shape):
    y, x = (torch.linspace(0, 1, side, dtype=torch.float64) for side in shape)
    return (1 - y + y**3)[:, None] * (2 + x**2 - x**3)


@pytest.mark.parametrize(
    ("interpolate", "function", "before"),
    [
        *((resample, bilinear, shape) for shape in ((2, 2), (5, 9), (17, 23))),
        *((interpolate_cubic, cubic, shape) for shape in ((4, 4), (5, 9), (17, 23))),
    ],
)
@pytest.mark.parametrize("after", [(2, 3), (5, 9), (30, 11), (64, 64)])
def test_polynomials_are_kept_on_ordinary_axes(interpolate, function, before, after):
    fields = function(before).expand(2, 3, *before)
    expected = function(after).expand(2, 3, *after)
    torch.testing.assert_close(interpolate(fields, after), expected)


@pytest.mark.parametrize(("before", "after"), [(3, 6), (7, 12), (12, 7), (8, 16)])
def test_a_periodic_axis_against_numpy(before, after):
    fields = random_fields(2, 3, before, 4)
    moved = resample(fields, (after, 4), ALONG_ROWS).movedim(2, -1).reshape(-1, after)
    nodes, wanted = np.arange(before) / before, np.arange(after) / after
    rows = fields.movedim(2, -1).reshape(-1, before).numpy()
    expected = np.stack([np.interp(wanted, nodes, row, period=1.0) for row in rows])
    np.testing.assert_allclose(moved.numpy(), expected, atol=1e-12)


def test_a_shift_by_common_nodes_commutes_along_periodic_axes():
    fields = random_fields(1, 2, 6, 8)
    moved = resample(fields.roll((3, 2), (2, 3)), (10, 12), ALONG_BOTH)
    expected = resample(fields, (10, 12), ALONG_BOTH).roll((5, 3), (2, 3))
    torch.testing.assert_close(moved, expected)


@pytest.mark.parametrize("periodic", [(False, False), ALONG_BOTH])
def test_a_single_node_becomes_a_constant_and_the_mean(periodic):
    fields = random_fields(2, 3, 1, 1)
    assert torch.equal(resample(fields, (5, 7), periodic), fields.expand(2, 3, 5, 7))
    many = random_fields(2, 3, 5, 7)
    torch.testing.assert_close(resample(many, (1, 1), periodic), many.mean((2, 3), keepdim=True))


@pytest.mark.parametrize("periodic", [(False, False), ALONG_ROWS])
def test_fields_on_the_grid_are_returned_as_they_are(periodic):
    fields = random_fields(2, 3, 5, 7)
    assert resample(fields, (5, 7), periodic) is fields


# Cubics


@pytest.mark.parametrize("periodic", [(False, False), ALONG_BOTH])
def test_nodes_in_common_are_kept(periodic):
    fields = random_fields(1, 2, 8, 8)
    finer = (16, 16) if periodic[0] else (15, 15)
    for function in (resample, interpolate_cubic):
        fine = function(fields, finer, periodic)
        torch.testing.assert_close(fine[..., ::2, ::2], fields, rtol=0, atol=1e-14)
        torch.testing.assert_close(function(fine, (8, 8), periodic), fields, rtol=0, atol=1e-14)


def test_cubics_of_a_wave_are_of_fourth_order():
    errors = []
    for nodes in (16, 32):
        wave, finer = (
            torch.sin(2 * torch.pi * torch.arange(count, dtype=torch.float64) / count + 0.3)
            for count in (nodes, 3 * nodes)
        )
        found = interpolate_cubic(wave[None, None, None], (1, 3 * nodes), (False, True))
        errors.append(float((found[0, 0, 0] - finer).abs().max()))
    assert 12 < errors[0] / errors[1] < 20


@pytest.mark.parametrize("before", [1, 2, 3])
def test_short_sides_have_polynomials_of_lower_degree(before):
    fields = torch.linspace(0, 1, before, dtype=torch.float64)[None, None, None]
    found = interpolate_cubic(fields, (1, 5))[0, 0, 0]
    expected = torch.zeros(5) if before == 1 else torch.linspace(0, 1, 5)
    torch.testing.assert_close(found, expected.double())
