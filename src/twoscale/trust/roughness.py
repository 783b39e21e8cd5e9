"""How much fields change from node to node: mean squares of differences, over all nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from twoscale.domain.grid import Grid

_ROWS, _COLUMNS = 4, 8  # of a block: pairs of rows, and nodes along a row
_BLOCKS = 16  # along an axis, at most
_LINES = 16  # rows, or a few more, on which neighbours two apart are compared with others
_LONG = 5  # nodes of a row in which there are neighbours two apart


class NeighbourSquares:
    """Mean squares of the differences between neighbours on a grid.

    Each row is paired with the next one, and differences along rows are taken on every other row:
    so every node counts, at half of the cost. There are four numbers: of the roughest block of
    8 x 8 nodes or more, of all nodes, and along some rows of neighbours and of nodes two apart.
    Rows of fewer than five nodes lack the last two. A grid of a single node has no number at all.
    """

    def __init__(self, grid: Grid) -> None:
        shape = grid.plane.shape
        height, self._width = sorted(shape) if 1 in shape else shape
        self._turned = (height, self._width) != shape  # a line is always a row
        self._rows = -(-height // 2)

    def __call__(self, fields: Tensor) -> Tensor:
        """Return numbers (samples, channels, n) of fields (samples, channels, height, width)."""
        fields = fields.mT if self._turned else fields
        if self._width == 1:
            return fields.new_zeros(*fields.shape[:2], 0)
        even = fields[:, :, ::2]
        along = squares = (even[..., 1:] - even[..., :-1]).square_()
        if fields.shape[2] > 1:
            odd = fields[:, :, 1::2]
            if fields.shape[2] % 2:  # the last row is paired with the one before it
                odd = torch.cat([odd, odd[:, :, -1:]], 2)
            across = (even - odd).square_()
            across[..., 1:].add_(along)
            squares = across
        blocks = _block_means(squares)
        found = [blocks.amax((2, 3)), blocks.mean((2, 3))]
        if self._width >= _LONG:
            step = max(1, self._rows // _LINES)
            some = even[:, :, ::step]
            two_apart = (some[..., 2:] - some[..., :-2]).square_()
            found += [along[:, :, ::step].mean((2, 3)), two_apart.mean((2, 3))]
        return torch.stack(found, 2)


def _block_means(values: Tensor) -> Tensor:
    """Return means (samples, channels, rows, columns of blocks) of values at nodes."""
    rows, columns = (
        min(side, max(least, -(-side // _BLOCKS)))
        for side, least in zip(values.shape[2:], (_ROWS, _COLUMNS), strict=True)
    )
    return _sums(_sums(values, 2, rows), 3, columns) / (rows * columns)


def _sums(values: Tensor, axis: int, length: int) -> Tensor:
    """Return sums of stretches of an axis; what is left makes one with values of the one before."""
    whole = values.shape[axis] // length * length
    left = values.shape[axis] - whole
    shape = (*values.shape[:axis], whole // length, length, *values.shape[axis + 1 :])
    sums = (values.narrow(axis, 0, whole) if left else values).view(shape).sum(axis + 1)
    if left:
        last = values.narrow(axis, values.shape[axis] - length, length).sum(axis, keepdim=True)
        sums = torch.cat([sums, last], axis)
    return sums


def lag_squares(fields: Tensor) -> list[Tensor]:
    """Return mean squares (samples, channels) of differences of nodes 1, 2, 4, ... apart.

    The nodes are that many apart along both axes, up to half of the shorter axis that has more than
    one node.
    """
    height, width = fields.shape[2:]
    shortest = min((side for side in (height, width) if side > 1), default=0)
    found, lag = [], 1
    while 2 * lag < shortest:
        down, right = (lag if side > 1 else 0 for side in (height, width))
        apart = fields[:, :, down:, right:] - fields[:, :, : height - down, : width - right]
        found.append(apart.square_().mean((2, 3)))
        lag *= 2
    return found
