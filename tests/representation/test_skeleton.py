import numpy as np
import pytest
import torch

from tests.conftest import make_poisson
from twoscale import PatchLayout, TwoscaleError
from twoscale.problems.base import diffusion
from twoscale.representation.skeleton import SeamNorm, Skeleton

CASES = [((32, 32), (4, 4)), ((16, 32), (2, 4)), ((18, 24), (3, 1)), ((9, 12), (3, 4))]
any_grid = pytest.mark.parametrize(("shape", "patches"), CASES)


def make(shape, patches):
    return Skeleton.of_grid(PatchLayout.tiling(shape, patches))


def line_mask(shape, patches):
    """The lines by their definition: the first of every patch and the last of the grid."""
    mask = np.zeros(shape, dtype=bool)
    for k in range(patches[0]):
        mask[k * shape[0] // patches[0]] = True
    for k in range(patches[1]):
        mask[:, k * shape[1] // patches[1]] = True
    mask[-1] = mask[:, -1] = True
    return mask


def random_traces(skeleton, generator, samples=3):
    return torch.randn(samples, skeleton.size, dtype=torch.float64, generator=generator)


@any_grid
def test_the_lines(shape, patches):
    skeleton = make(shape, patches)
    found = np.zeros(shape, dtype=bool).ravel()
    found[skeleton.places.numpy()] = True
    np.testing.assert_array_equal(found.reshape(shape), line_mask(shape, patches))
    boundary = 2 * sum(shape) - 4
    last = {divmod(int(k), shape[1]) for k in skeleton.places[-boundary:]}
    assert all(i in (0, shape[0] - 1) or j in (0, shape[1] - 1) for i, j in last)


@any_grid
def test_an_extension_has_its_trace_and_is_harmonic_inside(shape, patches, generator):
    skeleton = make(shape, patches)
    traces = random_traces(skeleton, generator)
    fields = skeleton.extend(traces)
    assert torch.equal(skeleton.trace(fields), traces)
    inside = torch.from_numpy(~line_mask(shape, patches))[1:-1, 1:-1]
    assert float(diffusion(fields)[:, inside].abs().max()) < 1e-9 * max(shape) ** 2


@any_grid
def test_linear_fields_are_their_own_extensions(shape, patches):
    rows, columns = (torch.linspace(0, 1, size, dtype=torch.float64) for size in shape)
    field = (1 + 2 * rows[:, None] - 3 * columns + rows[:, None] * columns)[None]
    skeleton = make(shape, patches)
    torch.testing.assert_close(skeleton.extend(skeleton.trace(field)), field)
    assert float(skeleton.bubbles(field).abs().max()) < 1e-12


@any_grid
def test_bubbles_vanish_on_the_lines_exactly(shape, patches):
    fields = make_poisson(shape, 5).outputs
    skeleton = make(shape, patches).float()
    bubbles = skeleton.bubbles(fields)
    assert not skeleton.trace(bubbles).any()
    again = skeleton.bubbles(bubbles)
    assert torch.equal(again, bubbles)


@any_grid
def test_tiles_and_their_fields(shape, patches):
    skeleton = make(shape, patches)
    bubbles = skeleton.bubbles(make_poisson(shape, 3).outputs.double())
    tiles = skeleton.tiles(bubbles)
    side = (shape[0] // patches[0], shape[1] // patches[1])
    assert tiles.shape == (3, patches[0] * patches[1], side[0] - 1, side[1] - 1)
    assert torch.equal(skeleton.join(tiles), bubbles)


@any_grid
@pytest.mark.parametrize("width", [0.0, 0.1])
def test_the_metric_of_traces_is_the_norm_of_their_extensions(shape, patches, width, generator):
    skeleton = make(shape, patches)
    norm = SeamNorm(skeleton, width)
    traces = random_traces(skeleton, generator)
    found = torch.einsum("bi,ij,bj->b", traces, norm.trace_metric(), traces)
    torch.testing.assert_close(found, squared_norm(skeleton, skeleton.extend(traces), width))


@any_grid
@pytest.mark.parametrize("width", [0.0, 0.1])
def test_the_weights_of_bubbles_give_their_norm(shape, patches, width, generator):
    skeleton = make(shape, patches)
    fields = torch.randn(3, *shape, dtype=torch.float64, generator=generator)
    bubbles = skeleton.bubbles(fields)
    weights = SeamNorm(skeleton, width).bubble_weights()
    found = (weights * skeleton.tiles(bubbles).square()).sum((1, 2, 3))
    torch.testing.assert_close(found, squared_norm(skeleton, bubbles, width))


def squared_norm(skeleton, fields, width):
    """The norm by its definition: nodes, and edges from an inner line into a patch."""
    values, (height, length) = fields.numpy(), skeleton.layout.shape
    weights = [(width * (size - 1)) ** 3 for size in (height, length)]
    total = (values**2).sum((1, 2))
    rows, columns = skeleton.layout.seams
    on_line = line_mask((height, length), skeleton.layout.counts)
    for i in rows:
        for step in (-1, 1):
            free = ~on_line[i + step]
            total += weights[0] * ((values[:, i] - values[:, i + step]) ** 2)[:, free].sum(1)
    for j in columns:
        for step in (-1, 1):
            free = ~on_line[:, j + step]
            total += weights[1] * ((values[:, :, j] - values[:, :, j + step]) ** 2)[:, free].sum(1)
    return torch.from_numpy(total)


def test_a_single_patch_has_the_boundary_as_its_skeleton():
    assert make((12, 12), (1, 1)).size == 44


def test_patches_without_inside_are_refused():
    message = "at least 3 nodes per side, these have 2x4: use fewer patches"
    with pytest.raises(TwoscaleError, match=message):
        make((8, 16), (4, 4))


def test_overlapping_patches_are_refused():
    with pytest.raises(TwoscaleError, match="patches that do not overlap"):
        Skeleton.of_grid(PatchLayout.tiling((16, 16), (2, 2), overlap=True))
