"""Cells of a grid: the means of fields over them, and the interpolation between their centres."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.domain.cuts import Cuts

_POOLS = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}
_MODES = {1: "linear", 2: "bilinear", 3: "trilinear"}


class Aggregation(nn.Module):
    """Restriction of fields to the means over cells, and prolongation from them.

    Cells are as equal as whole nodes allow: their sides differ by at most one node. Prolongation
    interpolates between the cells' centres, is constant beyond the outermost ones, and wraps along
    periodic axes.

    Parameters
    ----------
    axes
        The cells along each axis of the grid.

    Examples
    --------
    >>> from twoscale import Grid
    >>> Grid((8, 9)).coarsen((2, 3)).restrict(torch.zeros(5, 1, 8, 9)).shape
    torch.Size([5, 1, 2, 3])
    """

    def __init__(self, axes: Sequence[Cuts]) -> None:
        super().__init__()
        self.fine = tuple(cuts.size for cuts in axes)
        self.shape = tuple(cuts.count for cuts in axes)
        sides = {0 if cuts.periodic else side for cuts in axes for side in cuts.sides}
        self._side = sides.pop() if len(sides) == 1 else 0  # of all cells alike: a faster way
        for k, cuts in enumerate(axes):
            for name, matrix in (("means", _means(cuts)), ("between", _interpolation(cuts))):
                self.register_buffer(f"{name}{k}", matrix.float(), persistent=False)

    def restrict(self, fields: Tensor) -> Tensor:
        """Return the means (..., *cells) of fields (batch, channels, *shape)."""
        if self._side:
            return _POOLS[len(self.shape)](fields, self._side)
        values = fields.to(self.get_buffer("means0").dtype)
        return self._along_axes(values, "means")

    def prolong(self, means: Tensor) -> Tensor:
        """Return the fields (batch, channels, *shape) of means over cells."""
        if self._side:
            mode = _MODES[len(self.shape)]
            return functional.interpolate(means, self.fine, mode=mode, align_corners=False)
        return self._along_axes(means, "between")

    @property
    def matrices(self) -> list[tuple[Tensor, Tensor]]:
        """Return the matrices of restriction (cells, nodes) and prolongation of each axis."""
        return [
            (self.get_buffer(f"means{k}"), self.get_buffer(f"between{k}"))
            for k in range(len(self.shape))
        ]

    def _along_axes(self, values: Tensor, name: str) -> Tensor:
        last = len(self.shape) - 1
        for k in range(last):
            moved = values.movedim(2 + k, -2)
            values = (self.get_buffer(f"{name}{k}") @ moved).movedim(-2, 2 + k)
        return values @ self.get_buffer(f"{name}{last}").mT


def _means(cells: Cuts) -> Tensor:
    """Return the matrix (cells, nodes) that takes values to their means over cells, float64."""
    means = torch.zeros(cells.count, cells.size, dtype=torch.float64)
    for cell, (start, side) in enumerate(zip(cells.starts, cells.sides, strict=True)):
        means[cell, start : start + side] = 1 / side
    return means


def _interpolation(cells: Cuts) -> Tensor:
    """Return the matrix (nodes, cells) that interpolates between the cells' centres, float64."""
    starts, sides = (torch.tensor(one, dtype=torch.float64) for one in (cells.starts, cells.sides))
    centres = starts + (sides - 1) / 2
    nodes = torch.arange(cells.size, dtype=torch.float64)
    after = torch.searchsorted(centres, nodes, right=True)  # the first centre beyond a node
    before = after - 1
    wrapped = before.remainder(cells.count), after.remainder(cells.count)
    if not cells.periodic:
        wrapped = before.clamp_min(0), after.clamp_max(cells.count - 1)
    first, second = wrapped
    distance = (centres[second] - centres[first]).remainder(cells.size)
    share = torch.where(
        distance > 0, (nodes - centres[first]).remainder(cells.size) / distance, 0.0
    )
    matrix = torch.zeros(cells.size, cells.count, dtype=torch.float64)
    rows = torch.arange(cells.size)
    matrix.index_put_((rows, first), 1 - share, accumulate=True)
    return matrix.index_put_((rows, second), share, accumulate=True)
