import pytest
import torch

from twoscale.networks import FieldEncoder, count_parameters
from twoscale.networks.field_encoder import _AddProducts, usual_cut


def fields(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(32, 32), (16, 48), (17, 23), (4, 4), (128, 64)])
def test_fields_of_any_shape_become_fields_of_that_shape(shape):
    network = FieldEncoder(shape, width=4, blocks=1)
    assert network(fields(2, *shape)).shape == (2, *shape)


def test_a_node_matters_everywhere():
    network = FieldEncoder((32, 32), width=4, blocks=1).double()
    for parameter in network.parameters():  # past the start, at which blocks add nothing
        torch.nn.init.normal_(parameter, std=0.2, generator=torch.Generator().manual_seed(1))
    x = fields(1, 32, 32).double()
    changed = x.clone()
    changed[0, 13, 27] += 1.0
    with torch.no_grad():
        difference = network(changed) - network(x)
    assert float(difference.abs().min()) > 0


def test_the_seed_decides_and_leaves_other_random_numbers_alone():
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    networks = [FieldEncoder((16, 16), width=4, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(torch.rand(1), before)
    weights = [network.lift.weight for network in networks]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_width_and_blocks_make_it_larger():
    sizes = [
        count_parameters(FieldEncoder((32, 32), width=width, blocks=blocks))
        for width, blocks in ((4, 1), (4, 2), (8, 1))
    ]
    assert sizes[0] < min(sizes[1:])


USUAL_CUTS = {4: 1, 7: 1, 8: 2, 16: 2, 32: 2, 64: 2, 127: 4, 128: 4, 129: 4, 255: 8, 256: 8}
USUAL_CUTS |= {257: 8, 511: 16, 512: 16, 1023: 32, 1024: 32}


@pytest.mark.parametrize(("side", "cut"), USUAL_CUTS.items())
def test_squares_leave_about_32_cells_per_direction(side, cut):
    assert usual_cut((side, 2 * side)) == cut
    assert FieldEncoder((side, side), width=2, blocks=1, cut=None).cut == cut


def test_the_finest_level_never_has_many_more_cells_than_32():
    assert all(22 < side / usual_cut((side, side)) < 46 for side in range(46, 2000))


def test_the_gradient_reaches_every_weight():
    network = FieldEncoder((16, 16), width=4, blocks=1)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.2, generator=torch.Generator().manual_seed(1))
    network(fields(2, 16, 16)).square().sum().backward()
    assert all(float(p.grad.abs().max()) > 0 for p in network.parameters())


@pytest.mark.parametrize(("kernel", "inside"), [(3, 1), (1, 2)])
def test_the_gradient_of_a_block_is_that_of_its_formula(kernel, inside):
    cells = fields(2, 4, 6, 5).double().contiguous(memory_format=torch.channels_last)
    factors = fields(8 * inside, 4, kernel, kernel, seed=1).double()
    mix = fields(4, 4 * inside, 1, 1, seed=2).double()
    given = [x.requires_grad_() for x in (cells, factors, mix)]
    unit = cells * torch.rsqrt(cells.square().mean((1, 2, 3), keepdim=True))
    p, q = torch.nn.functional.conv2d(unit, factors, padding=kernel // 2).chunk(2, 1)
    plain = cells + torch.nn.functional.conv2d(p + p * q, mix)
    ours = _AddProducts.apply(*given)
    torch.testing.assert_close(ours, plain)
    weights = fields(*plain.shape, seed=3).double()
    slopes = torch.autograd.grad((plain * weights).sum(), given)
    torch.testing.assert_close(torch.autograd.grad((ours * weights).sum(), given), slopes)
