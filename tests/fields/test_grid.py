import pytest

from twoscale import Grid, TwoscaleError


def test_spacing_counts_the_boundary_nodes():
    grid = Grid(9, 17)
    assert grid.shape == (9, 17)
    assert grid.spacing == (1 / 8, 1 / 16)
    assert str(grid) == "9x17"


def test_square():
    assert Grid.square(16) == Grid(16, 16)


def test_grids_are_values():
    assert len({Grid(8, 9), Grid(8, 9), Grid(9, 8)}) == 2


@pytest.mark.parametrize("shape", [(7, 32), (32, 7), (0, 0), (-8, 16)])
def test_a_side_below_eight_is_refused(shape):
    with pytest.raises(TwoscaleError, match=f"at least 8 nodes per side, got {shape[0]}x"):
        Grid(*shape)
