"""What flags and bands are made of: ranks of errors, normal scores, and the roughness of fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError

Kind = TypeVar("Kind", bound=nn.Module)


def restore_buffers(module: Kind, tensors: Mapping[str, Tensor]) -> Kind:
    """Return a module with the buffers that its class declares, taken from tensors by name."""
    for name in type(module).__annotations__:
        if name not in tensors:
            raise TwoscaleError(f"the trust lacks '{name}': the artifact is damaged")
        module.register_buffer(name, tensors[name])
    return module


_LOWEST = 0.9  # level that is worth setting samples apart for


def conformal_quantile(scores: Tensor, level: float) -> float:
    """Return the bound that the score of a fresh sample keeps with probability `level` at least.

    This is the smallest score that ceil((n + 1) level) of the n scores do not exceed. It holds
    for any distribution, if the samples are exchangeable. Infinite if n is too small for it.

    >>> import torch
    >>> conformal_quantile(torch.arange(1.0, 20.0), 0.95)
    19.0
    """
    rank = needed_rank(len(scores), level)
    return float(scores.sort().values[rank - 1]) if rank <= len(scores) else math.inf


def needed_rank(samples: int, level: float) -> int:
    """Return the place of the quantile among sorted scores, from 1."""
    return math.ceil(round((samples + 1) * level, 9))


def fewest_samples(level: float) -> int:
    """Return how many scores are needed for a level.

    >>> fewest_samples(0.95), fewest_samples(0.99)
    (19, 99)
    """
    return math.ceil(round(level / (1 - level), 9))


def set_apart(held_out: int) -> int:
    """Return how many of the samples that are held out are for calibration: half of them.

    With fewer than 9 not even a level of 90 % is possible: then there are none.

    >>> set_apart(100), set_apart(17)
    (50, 0)
    """
    half = held_out // 2
    return half if half >= fewest_samples(_LOWEST) else 0


def check_level(level: Any) -> float:
    """Return a level, or raise if it is not a number between 0 and 1."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0 < float(level) < 1:
        raise TwoscaleError(f"the level is a number between 0 and 1, such as 0.95, got {level!r}")
    return float(level)


_KNOTS = 101  # quantiles of each number
_GAP = 1e-5  # least distance of knots, beside the number's own size
_TAIL = 10  # knots from the end, between which the tail's slope is taken
_FARTHEST = 1e100  # a score beyond this, or without a value, counts as this


class NormalScores(nn.Module):
    """The distances of groups of numbers from what is usual, whatever their distributions.

    Each number is replaced by the value that a standard normal number has at the same quantile.
    Beyond the training numbers this goes on straight. The distance of a group is the root mean
    square of its scores after whitening. All of this is in float64.
    """

    knots: Tensor  # (n, knots): quantiles of each number
    normals: Tensor  # (knots,): those of a normal number
    whitening: Tensor  # (n, n): one block for each group
    shares: Tensor  # (n, groups): weights of squares; 0 if a number is not of the group

    def __init__(self) -> None:
        super().__init__()
        self.lines: Tensor  # (n * (knots + 1), 3): start, score at the start, and slope of each
        self.first: Tensor  # (n, 1): the place of each number's first line

    def fit(self, numbers: Tensor, groups: Sequence[slice]) -> Self:
        """Learn the distributions of numbers (samples, n); groups are stretches of them.

        A group may be empty: its distance is always 0.
        """
        samples, count = numbers.shape
        values = numbers.double()
        knots = max(2, min(_KNOTS, samples))
        levels = torch.linspace(0, 1, knots, dtype=torch.float64, device=values.device)
        found = values.quantile(levels, dim=0).T if values.numel() else None
        if found is None:
            found = values.new_zeros(count, knots)
        size = values.abs().amax(0) if samples else values.sum(0)
        gap = (_GAP * size).clamp_min(torch.finfo(torch.float32).tiny)[:, None] / knots
        steps = gap * torch.arange(knots, device=values.device)
        inner = (levels * samples + 0.5) / (samples + 1)
        self.register_buffer("normals", torch.special.ndtri(inner))
        apart = found + steps - steps.mean(-1, keepdim=True)
        self.register_buffer("knots", apart.contiguous())
        self._prepare()
        scores = self._scores(values)
        whitening, shares = values.new_zeros(count, count), values.new_zeros(count, len(groups))
        for place, group in enumerate(groups):
            length = group.stop - group.start
            whitening[group, group] = _whitening(scores[:, group])
            shares[group, place] = 1 / max(length, 1)
        self.register_buffer("whitening", whitening)
        self.register_buffer("shares", shares)
        return self

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the distances (samples, groups) of numbers (samples, n); they are never NaN."""
        white = self._scores(numbers.double()) @ self.whitening.T
        return (white.square_() @ self.shares).sqrt_()

    def scale(self, size: float) -> None:
        """Divide all distances by a size."""
        self.shares /= size**2

    def _prepare(self) -> None:
        """Make the table of straight lines.

        The first and the last line go on beyond the knots; their slope is that of some knots.
        """
        count, knots = self.knots.shape
        tail = min(_TAIL, knots - 1)
        left = torch.arange(-1, knots, device=self.knots.device)
        left[0], left[-1] = 0, knots - 1 - tail
        right = left + 1
        right[0], right[-1] = tail, knots - 1
        start = left.clone()
        start[-1] = knots - 1
        run = self.knots[:, right] - self.knots[:, left]
        slope = (self.normals[right] - self.normals[left]) / run
        lines = torch.stack([self.knots[:, start], self.normals[start].expand_as(slope), slope], 2)
        self.register_buffer("lines", lines.flatten(0, 1), persistent=False)
        first = torch.arange(count, device=self.knots.device) * (knots + 1)
        self.register_buffer("first", first[:, None], persistent=False)

    def _scores(self, numbers: Tensor) -> Tensor:
        """Return the normal scores of numbers: straight between knots, and beyond them."""
        wanted = numbers.T.contiguous()
        place = torch.searchsorted(self.knots, wanted).add_(self.first)
        start, base, slope = self.lines[place].unbind(2)
        found = torch.addcmul(base, wanted - start, slope).T
        return found.nan_to_num_(_FARTHEST).clamp_(-_FARTHEST, _FARTHEST)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from tensors, named as in `state_dict`."""
        restore_buffers(self, tensors)._prepare()
        return self


def _whitening(scores: Tensor) -> Tensor:
    """Return the matrix W such that W s has unit covariance, of scores (samples, n).

    The covariance of few samples is mixed with its diagonal.
    """
    samples, size = scores.shape
    covariance = scores.T @ scores / max(samples, 1)
    diagonal = covariance.diagonal().clamp_min(1e-2)
    mixed = covariance + torch.diag((1e-2 + size / max(samples, 1)) * diagonal)
    values, vectors = torch.linalg.eigh(mixed)
    return (vectors / values.sqrt()).T


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
