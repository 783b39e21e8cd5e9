"""How much fields change from node to node: mean squares of differences, over all nodes."""

from __future__ import annotations

import torch
from torch import Tensor

_ROWS, _COLUMNS = 4, 8  # of a block: pairs of rows, and nodes along a row
_BLOCKS = 16  # along an axis, at most


def block_squares(fields: Tensor, scale: Tensor) -> Tensor:
    """Return mean squares (samples, channels, blocks) of the differences between neighbours.

    Fields are (samples, channels, height, width), `scale` is what each channel is multiplied by,
    (channels, 1, 1). Each row is paired with the next one, and differences along rows are taken on
    every other row: so every node counts, at half of the cost. On a single node there is no block.
    """
    if fields.shape[3] == 1:
        fields = fields.mT
    height, width = fields.shape[2:]
    if width == 1:
        return fields.new_zeros(*fields.shape[:2], 0)
    even = fields[:, :, ::2]
    squares = (even[..., 1:] - even[..., :-1]).mul_(scale).square_()
    if height > 1:
        odd = fields[:, :, 1::2]
        if height % 2:  # the last row is paired with the one before it
            odd = torch.cat([odd, odd[:, :, -1:]], 2)
        across = (even - odd).mul_(scale).square_()
        across[..., 1:] += squares
        squares = across
    return _block_means(squares)


def _block_means(values: Tensor) -> Tensor:
    """Return the means (samples, channels, blocks) of values (samples, channels, rows, columns).

    Blocks of rows that do not fill the last one reach back into the block before.
    """
    rows, columns = values.shape[2:]
    length = min(rows, max(_ROWS, -(-rows // _BLOCKS)))
    whole = rows // length * length
    sums = values[:, :, :whole].unflatten(2, (-1, length)).sum(3)
    if whole < rows:
        sums = torch.cat([sums, values[:, :, -length:].sum(2, keepdim=True)], 2)
    count = min(_BLOCKS, max(1, columns // _COLUMNS))
    block = torch.arange(columns, device=values.device) * count // columns
    pooling = torch.nn.functional.one_hot(block, count).to(values)
    return (sums @ (pooling / (length * pooling.sum(0)))).flatten(2)


def lag_squares(fields: Tensor) -> list[Tensor]:
    """Return mean squares (samples, channels) of differences of nodes 1, 2, 4, ... apart.

    The nodes are that many apart along both axes, up to half of the shorter axis that has more than
    one node.
    """
    sides = [side for side in fields.shape[2:] if side > 1]
    found, lag = [], 1
    while sides and 2 * lag < min(sides):
        down, right = (lag if side > 1 else 0 for side in fields.shape[2:])
        height, width = fields.shape[2] - down, fields.shape[3] - right
        apart = fields[:, :, down:, right:] - fields[:, :, :height, :width]
        found.append(apart.square_().mean((2, 3)))
        lag *= 2
    return found
