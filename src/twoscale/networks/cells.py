"""How a grid is cut into cells: rectangles of nodes that become the channels of one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from twoscale.errors import TwoscaleError

_COARSEST = 4  # cells per direction at which everything meets everything
_FINEST = 32  # cells per direction, or about as many
_COARSE_CUT = 4  # nodes per direction of larger cells
_FEW_CELLS = 16  # per direction: larger cells leave as many at least
_MOST_MEETING = 32  # cells per direction that may meet at most along a periodic axis


class Axis(NamedTuple):
    """One axis in `cells` cells of `cut` nodes each, whose number is halved `halvings` times."""

    cut: int
    cells: int
    halvings: int

    @property
    def nodes(self) -> int:
        """Return the number of nodes with those added to fill the last cells."""
        return self.cut * self.cells

    @property
    def coarsest(self) -> int:
        return self.cells >> self.halvings


def usual_cut(side: int) -> int:
    """Return the nodes along a side of the cells of the finest level.

    It is the power of two that leaves nearest to 32 cells, from 23 to 45; two at least, where the
    side has eight nodes.
    """
    if side < 2 * _COARSEST:
        return 1
    return max(2, 2 ** round(math.log2(side / _FINEST)))


def coarse_cut(side: int) -> int:
    """Return the nodes along a side of the cells of a network that has to be small.

    These are four or more where 16 cells are left; otherwise as many as usual.
    """
    usual = usual_cut(side)
    return max(usual, _COARSE_CUT) if side >= _FEW_CELLS * _COARSE_CUT else usual


def divide(
    shape: tuple[int, int], cuts: Sequence[int], periodic: tuple[bool, bool]
) -> tuple[Axis, Axis]:
    """Return how rows and columns of a grid are divided into cells of about `cuts` nodes."""
    if min(cuts) < 1:
        raise TwoscaleError(f"cells have at least one node along each axis, got {tuple(cuts)}")
    rows, columns = (
        _periodic_axis(side, cut) if wraps else _ordinary_axis(side, cut)
        for side, cut, wraps in zip(shape, cuts, periodic, strict=True)
    )
    return rows, columns


def _ordinary_axis(side: int, cut: int) -> Axis:
    """Return an axis that is filled up until its cells can be halved down to about four."""
    cut = min(cut, side)
    cells = -(-side // cut)
    halvings = _halvings(cells)
    unit = 2**halvings
    return Axis(cut, -(-cells // unit) * unit, halvings)


def _periodic_axis(side: int, cut: int) -> Axis:
    """Return an axis of exactly as many nodes as the side has, if there is a suitable one.

    Otherwise its last node would not be followed by its first. Cuts up to a factor of two from the
    wanted one are tried. The best one is near it and leaves few cells on the coarsest level. A
    side without any (a large prime) is filled up as an ordinary one is.
    """
    ordinary = _ordinary_axis(side, cut)
    if ordinary.nodes == side:
        return ordinary
    exact = [_exact_axis(side, k) for k in range(-(-cut // 2), 2 * cut + 1) if side % k == 0]
    return min(
        (axis for axis in exact if axis.coarsest <= _MOST_MEETING),
        key=lambda axis: max(axis.cut / cut, cut / axis.cut) * max(axis.coarsest, _COARSEST),
        default=ordinary,
    )


def _exact_axis(side: int, cut: int) -> Axis:
    """Return an axis without added nodes: cells are halved as long as their number is even."""
    cells = side // cut
    twos = (cells & -cells).bit_length() - 1
    return Axis(cut, cells, min(twos, _halvings(cells)))


def _halvings(cells: int) -> int:
    """Return how often so many cells can be halved until fewer than four would be left."""
    return max(0, math.floor(math.log2(cells / _COARSEST)))


def to_cells(fields: Tensor, axes: tuple[Axis, Axis]) -> Tensor:
    """Return (batch, rows, columns, channels x nodes of a cell) from whole fields.

    The channels are in the order of `torch.nn.functional.pixel_unshuffle`: by channel, then by
    row and column inside a cell.
    """
    rows, columns = axes
    apart = fields.unflatten(3, (columns.cells, columns.cut)).unflatten(2, (rows.cells, rows.cut))
    return apart.permute(0, 2, 4, 1, 3, 5).flatten(3)


def from_cells(cells: Tensor, axes: tuple[Axis, Axis]) -> Tensor:
    """Return fields (batch, channels, height, width) from cells (batch, channels x nodes, ...)."""
    rows, columns = axes
    apart = cells.unflatten(1, (-1, rows.cut, columns.cut))
    return apart.permute(0, 1, 4, 2, 5, 3).flatten(4).flatten(2, 3)
