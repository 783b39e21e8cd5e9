import numpy as np
import pytest
import torch

from twoscale.domain.cuts import Axis, Cuts
from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.representation.skeleton import SeamNorm, Skeleton

CASES = [
    (Grid((32, 32)), (4, 4)),
    (Grid((16, 32)), (2, 4)),
    (Grid((18, 24)), (3, 1)),
    (Grid((9, 12)), (3, 4)),
    (Grid((17, 23)), (4, 4)),
    (Grid((30, 50)), (4, 3)),
    (Grid((1, 64)), (4, 4)),
    (Grid((22, 1)), (3, 2)),
    (Grid.square(32, periodic=True), (4, 4)),
    (Grid((17, 16), periodic=(True, True)), (4, 4)),
    (Grid((16, 17), periodic=(False, True)), (3, 2)),
    (Grid((9, 12), periodic=(True, True)), (1, 1)),
    (Grid((1, 13), periodic=(False, True)), (1, 1)),
]
any_grid = pytest.mark.parametrize(("grid", "patches"), CASES, ids=str)


def make(grid, patches):
    return Skeleton.of_grid(grid.partition(patches))


def lines_of(size, count, periodic):
    """The lines by their definition: the first of every patch and the last of an ordinary axis."""
    if size == 1:
        return []
    return [*Cuts.equal(Axis(size), count).starts] + ([] if periodic else [size - 1])


def line_mask(grid, patches):
    mask = np.zeros(grid.shape, dtype=bool)
    rows, columns = map(lines_of, grid.shape, patches, grid.periodic)
    mask[rows] = True
    mask[:, columns] = True
    return mask


def laplacian(grid, fields):
    """The five-point Laplacian; wrong at the ends of ordinary axes, which are never inside."""
    total = torch.zeros_like(fields)
    for axis, size, spacing in zip((-2, -1), grid.shape, grid.spacing, strict=True):
        if size > 1:
            beside = fields.roll(1, axis) + fields.roll(-1, axis)
            total += (beside - 2 * fields) / spacing**2
    return total


def random_traces(skeleton, generator, samples=3):
    return torch.randn(samples, 2, skeleton.size, dtype=torch.float64, generator=generator)


def random_fields(grid, generator, dtype=torch.float64):
    return torch.randn(3, 2, *grid.shape, dtype=dtype, generator=generator)


@any_grid
def test_the_lines(grid, patches):
    skeleton = make(grid, patches)
    found = np.zeros(grid.shape, dtype=bool).ravel()
    found[skeleton.places.numpy()] = True
    expected = line_mask(grid, patches)
    np.testing.assert_array_equal(found.reshape(grid.shape), expected)
    assert skeleton.size == expected.sum()


@any_grid
def test_the_boundary_comes_last(grid, patches):
    boundary = np.zeros(grid.shape, dtype=bool)
    ordinary = [s > 1 and not p for s, p in zip(grid.shape, grid.periodic, strict=True)]
    boundary[[0, -1]] |= ordinary[0]
    boundary[:, [0, -1]] |= ordinary[1]
    skeleton = make(grid, patches)
    on_boundary = boundary.ravel()[skeleton.places.numpy()]
    assert on_boundary.sum() == boundary.sum()
    assert (np.sort(on_boundary) == on_boundary).all()


@any_grid
def test_an_extension_has_its_trace_and_is_harmonic_inside(grid, patches, generator):
    skeleton = make(grid, patches)
    traces = random_traces(skeleton, generator)
    fields = skeleton.extend(traces)
    assert fields.shape == (3, 2, *grid.shape)
    assert torch.equal(skeleton.trace(fields), traces)
    inside = torch.from_numpy(~line_mask(grid, patches))
    assert float(laplacian(grid, fields)[..., inside].abs().max()) < 1e-9 * max(grid.shape) ** 2


@any_grid
def test_linear_fields_are_their_own_extensions(grid, patches):
    """Along a periodic axis they are constant."""
    rows, columns = (
        torch.zeros(size).double() if periodic else torch.linspace(0, 1, size, dtype=torch.float64)
        for size, periodic in zip(grid.shape, grid.periodic, strict=True)
    )
    field = (1 + 2 * rows[:, None] - 3 * columns + rows[:, None] * columns)[None, None]
    skeleton = make(grid, patches)
    torch.testing.assert_close(skeleton.extend(skeleton.trace(field)), field)
    assert float(skeleton.bubbles(field).abs().max()) < 1e-12


@any_grid
def test_bubbles_vanish_on_the_lines_exactly(grid, patches, generator):
    fields = random_fields(grid, generator, torch.float32)
    skeleton = make(grid, patches).float()
    bubbles = skeleton.bubbles(fields)
    assert not skeleton.trace(bubbles).any()
    again = skeleton.bubbles(bubbles)
    assert torch.equal(again, bubbles)


@any_grid
def test_tiles_and_their_fields(grid, patches, generator):
    skeleton = make(grid, patches)
    bubbles = skeleton.bubbles(random_fields(grid, generator))
    tiles = skeleton.tiles(bubbles)
    layout = skeleton.layout
    inside = [side - (side > 1) for side in layout.patch]
    assert tiles.shape == (3, layout.count, 2, *inside)
    assert torch.equal(skeleton.join(tiles), bubbles)


@any_grid
@pytest.mark.parametrize("width", [0.0, 0.1])
def test_the_metric_of_traces_is_the_norm_of_their_extensions(grid, patches, width, generator):
    skeleton = make(grid, patches)
    norm = SeamNorm(skeleton, width)
    traces = random_traces(skeleton, generator)[:, 0]
    found = torch.einsum("bi,ij,bj->b", traces, norm.trace_metric(), traces)
    expected = squared_norm(grid, patches, skeleton.extend(traces), width)
    torch.testing.assert_close(found, expected)


@any_grid
@pytest.mark.parametrize("width", [0.0, 0.1])
def test_the_weights_of_bubbles_give_their_norm(grid, patches, width, generator):
    skeleton = make(grid, patches)
    bubbles = skeleton.bubbles(random_fields(grid, generator))[:, :1]
    weights = SeamNorm(skeleton, width).bubble_weights()
    assert float(weights.min()) == 1
    found = (weights * skeleton.tiles(bubbles)[:, :, 0].square()).sum((1, 2, 3))
    torch.testing.assert_close(found, squared_norm(grid, patches, bubbles[:, 0], width))


def squared_norm(grid, patches, fields, width):
    """The norm by its definition: nodes, and edges from an inner line into a patch."""
    values = fields.numpy()
    total = (values**2).sum((1, 2))
    on_line = line_mask(grid, patches)
    for axis, size in enumerate(grid.shape):
        weight = (width / grid.spacing[axis]) ** 3
        lines = lines_of(size, patches[axis], grid.periodic[axis])
        for line in lines if grid.periodic[axis] else lines[1:-1]:
            for step in (-1, 1):
                beside = (line + step) % size
                difference = values.take(line, axis + 1) - values.take(beside, axis + 1)
                total += weight * (difference[:, ~on_line.take(beside, axis)] ** 2).sum(1)
    return torch.from_numpy(total)


def test_a_single_patch_has_the_boundary_as_its_skeleton():
    assert make(Grid((12, 12)), (1, 1)).size == 44


@pytest.mark.parametrize(
    ("grid", "patches", "sides"),
    [
        (Grid((8, 16)), (4, 4), "2x4"),
        (Grid((11, 16)), (4, 4), "2x4"),
        (Grid((1, 8)), (1, 4), "1x2"),
    ],
)
def test_patches_without_inside_are_refused(grid, patches, sides):
    message = f"at least 3 nodes per side, these have {sides}: use fewer patches"
    with pytest.raises(TwoscaleError, match=message):
        make(grid, patches)


def test_a_single_node_is_refused():
    with pytest.raises(TwoscaleError, match="a grid of at least two nodes, this one has a single"):
        make(Grid((1, 1)), (1, 1))


def test_overlapping_patches_are_refused():
    with pytest.raises(TwoscaleError, match="patches that do not overlap"):
        Skeleton.of_grid(Grid((16, 16)).partition((2, 2), overlap=True))
