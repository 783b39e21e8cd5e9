"""Numbers of any distribution as normal ones, and how far groups of them are from the usual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.trust.state import restore_buffers

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
