"""Differences between neighbours: every node counts, and smooth fields have the right numbers."""

import pytest
import torch

from twoscale.domain.grid import Grid
from twoscale.trust.statistics import NeighbourSquares, lag_squares

GRIDS = [(16, 16), (17, 9), (9, 17), (1, 20), (20, 1), (2, 2), (3, 2), (2, 40), (37, 70), (300, 3)]


@pytest.mark.parametrize("shape", GRIDS)
def test_every_node_counts(shape):
    """A single node that differs from all others raises the mean, and that of a block more."""
    nodes = shape[0] * shape[1]
    fields = torch.eye(nodes).reshape(nodes, 1, *shape)
    largest, mean = NeighbourSquares(Grid(shape))(fields)[:, 0, :2].T
    assert float(mean.min()) > 0
    assert bool((largest >= mean * 0.999).all())


@pytest.mark.parametrize("shape", GRIDS)
def test_a_slope_has_the_same_differences_everywhere(shape):
    fields = torch.arange(shape[0] * shape[1], dtype=torch.float32).reshape(1, 1, *shape)
    found = NeighbourSquares(Grid(shape))(fields)[0, 0].tolist()
    if 1 in shape:
        assert found == pytest.approx([1.0, 1.0, 1.0, 4.0])
    else:
        assert all(number > 0 for number in found)
    assert len(found) == (4 if shape[1] > 4 or shape[1] == 1 else 2)


def test_blocks_tell_where_a_field_is_rough():
    generator = torch.Generator().manual_seed(0)
    fields = torch.zeros(1, 1, 64, 64)
    fields[..., 16:24, 40:48] = torch.randn(8, 8, generator=generator)
    largest, mean = NeighbourSquares(Grid((64, 64)))(fields)[0, 0, :2].tolist()
    assert largest > 30 * mean


def test_a_single_node_has_no_differences():
    assert NeighbourSquares(Grid((1, 1)))(torch.ones(3, 2, 1, 1)).shape == (3, 2, 0)
    assert lag_squares(torch.ones(3, 2, 1, 1)) == []


def test_lags_are_taken_along_both_axes():
    fields = torch.arange(10.0)[:, None] + torch.arange(12.0)
    found = lag_squares(fields[None, None])
    assert [float(one) for one in found] == [4.0, 16.0, 64.0]
