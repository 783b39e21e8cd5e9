import json

import pytest

from twoscale import Grid, TwoscaleError
from twoscale.domain.grid import Space


def test_spacing_counts_the_boundary_nodes():
    grid = Grid(9, 17)
    assert grid.shape == (9, 17)
    assert grid.nodes == 153
    assert grid.spacing == (1 / 8, 1 / 16)
    assert str(grid) == "9x17"


def test_a_periodic_axis_has_as_many_spacings_as_nodes():
    grid = Grid(8, 17, (True, False))
    assert grid.spacing == (1 / 8, 1 / 16)
    assert str(grid) == "8px17"


def test_a_single_node_has_a_spacing_of_one():
    assert Grid(1, 5).spacing == (1.0, 1 / 4)
    assert Grid(1, 1).spacing == (1.0, 1.0)


def test_square():
    assert Grid.square(16) == Grid(16, 16)
    assert Grid.square(16, periodic=True) == Grid(16, 16, (True, True))


def test_grids_are_values():
    assert len({Grid(8, 9), Grid(8, 9), Grid(9, 8), Grid(8, 9, (True, False))}) == 3


@pytest.mark.parametrize("shape", [(0, 32), (32, 0), (-8, 16), (8, 10**6 + 1)])
def test_a_side_without_nodes_or_with_too_many_is_refused(shape):
    with pytest.raises(TwoscaleError, match=f"1 to 1000000 nodes per side, got {shape[0]}x"):
        Grid(*shape)


@pytest.mark.parametrize("side", [8.0, "8", True, None])
def test_sides_are_whole_numbers(side):
    with pytest.raises(TwoscaleError, match="whole numbers of nodes per side, got"):
        Grid(side, 8)


@pytest.mark.parametrize("periodic", [(True,), (1, 0), (True, False, True), ("yes", "no")])
def test_periodic_is_said_of_both_axes(periodic):
    with pytest.raises(TwoscaleError, match="periodic says of rows and columns whether they wrap"):
        Grid(8, 8, periodic)


# Spaces


def test_a_space():
    space = Space(3, Grid(8, 9), 1, ("u", "v", "p"))
    assert space.shape == (3, 8, 9)
    assert space.field_channels == 2
    assert space.channel_names == ("u", "v", "p")
    assert str(space) == "3x8x9"
    assert str(Space(1, Grid(8, 9))) == "8x9"
    assert Space(2, Grid(8, 9)).channel_names == ("0", "1")


@pytest.mark.parametrize(
    "space",
    [Space(1, Grid(8, 9)), Space(3, Grid(1, 9, (False, True)), 2, ("u", "a", "b"))],
    ids=str,
)
def test_a_space_comes_back_from_plain_values(space):
    assert Space.from_dict(json.loads(json.dumps(space.as_dict()))) == space


@pytest.mark.parametrize(("channels", "parameters"), [(0, 0), (1, 2), (2, -1)])
def test_a_space_has_channels(channels, parameters):
    with pytest.raises(TwoscaleError, match=f"at least one channel, got {channels} with"):
        Space(channels, Grid(8, 8), parameters)


@pytest.mark.parametrize("names", [("u",), ("u", "u"), ("u", "v", "w")])
def test_names_are_as_many_and_different(names):
    with pytest.raises(TwoscaleError, match="2 channels need as many different names, got"):
        Space(2, Grid(8, 8), names=names)
