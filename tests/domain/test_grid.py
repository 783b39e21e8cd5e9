import json
from math import prod

import pytest
import torch

from twoscale import Grid, TwoscaleError
from twoscale.domain.cuts import Axis
from twoscale.domain.patches import Partition
from twoscale.domain.space import Space


@pytest.mark.parametrize(
    ("grid", "spacing", "text"),
    [
        (Grid((9, 17)), (1 / 8, 1 / 16), "9x17"),
        (Grid((8, 17), periodic=(True, False)), (1 / 8, 1 / 16), "8px17"),
        (Grid((1, 5)), (1.0, 1 / 4), "1x5"),
        (Grid.square(1), (1.0, 1.0), "1x1"),
        (Grid.square(16, periodic=True), (1 / 16, 1 / 16), "16px16p"),
    ],
)
def test_spacing_counts_the_boundary_nodes_of_ordinary_axes(grid, spacing, text):
    assert grid.nodes == prod(grid.shape)
    assert grid.spacing == spacing
    assert str(grid) == text


def test_grids_are_values():
    assert (
        len({Grid((8, 9)), Grid((8, 9)), Grid((9, 8)), Grid((8, 9), periodic=(True, False))}) == 3
    )


@pytest.mark.parametrize(
    ("axes", "periodic", "words"),
    [
        *((shape, None, "1 to 1000000") for shape in ((0, 32), (32, 0), (-8, 16), (8, 10**6 + 1))),
        *(((side, 8), None, "whole numbers") for side in (8.0, "8", True, None)),
        *((shape, None, "one to three axes") for shape in ((), (2, 2, 2, 2), 8)),
        *(((8, 8), wraps, "periodic") for wraps in ((True,), (1, 0), (True,) * 3, ("yes", "no"))),
    ],
)
def test_grids_that_make_no_sense_are_refused(axes, periodic, words):
    with pytest.raises(TwoscaleError, match=words):
        Grid(axes) if periodic is None else Grid(axes, periodic=periodic)


# Spaces


def test_a_space():
    space = Space(Grid((8, 9)), 2, names=("u", "v", "p"), parameters=1)
    assert space.shape == (2, 8, 9)
    assert (space.channel_names, space.parameter_names) == (("u", "v"), ("p",))
    assert str(space) == "2x8x9"
    assert str(Space(Grid((8, 9)))) == "8x9"
    assert Space(Grid((8, 9)), 2).channel_names == ("0", "1")


@pytest.mark.parametrize(
    "space",
    [
        Space(Grid((8, 9))),
        Space(Grid((1, 9), periodic=(False, True)), 1, names=("u", "a", "b"), parameters=2),
    ],
    ids=str,
)
def test_a_space_comes_back_from_plain_values(space):
    assert Space.from_dict(json.loads(json.dumps(space.as_dict()))) == space


@pytest.mark.parametrize(
    ("channels", "options", "words"),
    [
        *((count, {"parameters": p}, "one channel") for count, p in ((0, 0), (-1, 2), (2, -1))),
        *((2, {"names": names}, "2 channels") for names in (("u",), ("u", "u"), ("u", "v", "w"))),
    ],
)
def test_a_space_has_channels_and_as_many_names(channels, options, words):
    with pytest.raises(TwoscaleError, match=words):
        Space(Grid((8, 8)), channels, **options)


# Domains of one to three dimensions

GRIDS = {
    "line": Grid((9,)),
    "periodic line": Grid((Axis(8, periodic=True, extent=2.0),)),
    "plane": Grid((5, 7), periodic=(True, False)),
    "box": Grid((4, Axis(5, extent=3.0), 6)),
    "masked": Grid((3, 4), torch.tensor([[True] * 4, [True, True, False, False], [True] * 4])),
}
any_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


@any_grid
def test_weights_add_up_to_the_measure(grid):
    assert grid.weights.shape == grid.shape
    if grid.mask is None:
        assert float(grid.weights.sum()) == pytest.approx(prod(a.extent for a in grid.axes))
    else:
        assert not grid.weights[~grid.mask].any()


@any_grid
def test_edges_join_neighbours_once(grid):
    places = torch.stack(torch.meshgrid(*map(torch.arange, grid.shape), indexing="ij"), -1)
    first, second = places.reshape(-1, len(grid.shape))[grid.edges()]
    apart = (second - first).abs()
    sizes = torch.tensor(grid.shape)
    assert bool((torch.minimum(apart, sizes - apart).sum(1) == 1).all())
    assert len(set(map(frozenset, grid.edges().T.tolist()))) == grid.edges().shape[1]


def test_a_masked_node_has_no_neighbours():
    grid = GRIDS["masked"]
    assert set(grid.edges().flatten().tolist()) == set(grid.mask.flatten().nonzero()[:, 0].tolist())
    assert grid == Grid((3, 4), grid.mask) != Grid((3, 4))
    with pytest.raises(TwoscaleError, match="mask"):
        Grid((3, 4), torch.ones(4, 3, dtype=torch.bool))
    with pytest.raises(TwoscaleError, match="without masks"):
        _ = grid.plane


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("name", ["line", "periodic line", "plane", "box"])
def test_a_grid_of_any_dimension_is_cut_and_put_together(name, overlap, generator):
    grid = GRIDS[name]
    layout = grid.partition((2,) * len(grid.shape), overlap=overlap)
    fields = torch.randn(3, 2, *grid.shape, dtype=torch.float64, generator=generator)
    parts = layout.extract(fields)
    torch.testing.assert_close(parts, Partition.extract(layout, fields))
    weighted = parts * layout.weights("hann").repeat(1, 2)
    torch.testing.assert_close(layout.assemble(weighted), fields)
    torch.testing.assert_close(Partition.assemble(layout, weighted), fields)


@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("name", ["line", "periodic line", "plane", "box"])
def test_constants_survive_coarsening_in_any_dimension(name, cells):
    grid = GRIDS[name]
    coarse = grid.coarsen((cells,) * len(grid.shape))
    ones = torch.ones(2, 1, *grid.shape)
    means = coarse.restrict(ones)
    assert means.shape == (2, 1, *coarse.shape)
    torch.testing.assert_close(coarse.prolong(means), ones)


def test_a_line_is_a_plane_of_one_row():
    assert Grid((9,)).plane == Grid((1, 9)).plane == ((1, 9), (False, False))
