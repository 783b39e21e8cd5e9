import numpy as np
import pytest
import torch

from twoscale.networks import resample
from twoscale.networks.field_map import interpolate_cubic

ALONG_ROWS, ALONG_BOTH = (True, False), (True, True)


def random_fields(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def bilinear(shape):
    """The function 1 + 2 y - 3 x + x y at the nodes of the unit square."""
    y, x = (torch.linspace(0, 1, side, dtype=torch.float64) for side in shape)
    return 1 + 2 * y[:, None] - 3 * x + y[:, None] * x


@pytest.mark.parametrize("before", [(2, 2), (5, 9), (17, 23)])
@pytest.mark.parametrize("after", [(2, 3), (5, 9), (30, 11), (64, 64)])
def test_bilinear_functions_are_kept_on_ordinary_axes(before, after):
    fields = bilinear(before).expand(2, 3, *before)
    torch.testing.assert_close(resample(fields, after), bilinear(after).expand(2, 3, *after))


def test_periodic_axes_wrap():
    fields = torch.tensor([0.0, 4.0, 8.0], dtype=torch.float64).view(1, 1, 3, 1)
    expected = [0.0, 2.0, 4.0, 6.0, 8.0, 4.0]  # the last half way from node 2 back to node 0
    assert resample(fields, (6, 1), ALONG_ROWS).flatten().tolist() == expected


@pytest.mark.parametrize(("before", "after"), [(7, 12), (12, 7), (8, 16)])
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


def test_one_axis_alone():
    fields = random_fields(2, 3, 5, 7)
    assert resample(fields, (5, 9)).shape == (2, 3, 5, 9)
    torch.testing.assert_close(resample(fields, (5, 13))[..., ::2], fields)


@pytest.mark.parametrize("periodic", [(False, False), ALONG_ROWS])
def test_fields_on_the_grid_are_returned_as_they_are(periodic):
    fields = random_fields(2, 3, 5, 7)
    assert resample(fields, (5, 7), periodic) is fields


def test_the_precision_is_kept():
    assert resample(torch.zeros(1, 1, 3, 3), (5, 5)).dtype == torch.float32


def test_the_gradient():
    fields = random_fields(2, 2, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: resample(x, (5, 2), ALONG_ROWS), (fields,))


# Cubics


def cubic(shape):
    y, x = (torch.linspace(0, 1, side, dtype=torch.float64) for side in shape)
    return (1 - y + y**3)[:, None] * (2 + x**2 - x**3)


@pytest.mark.parametrize("before", [(4, 4), (5, 9), (17, 23)])
@pytest.mark.parametrize("after", [(2, 3), (5, 9), (30, 11), (64, 64)])
def test_cubic_functions_are_kept_on_ordinary_axes(before, after):
    fields = cubic(before).expand(2, 3, *before)
    torch.testing.assert_close(interpolate_cubic(fields, after), cubic(after).expand(2, 3, *after))


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
