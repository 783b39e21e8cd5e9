"""Numbers of any distribution as normal ones, and how far a group of them is from the usual."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

_KNOTS = 101  # quantiles of each number
_GAP = 1e-5  # least distance of knots, beside the number's own size
_TAIL = 10  # knots from the end, between which the tail's slope is taken


class NormalScores(nn.Module):
    """The distance of some numbers from what is usual, whatever their distributions.

    Each number is replaced by the value that a standard normal number has at the same quantile.
    Beyond the training numbers this goes on straight. The distance is the root mean square after
    whitening.
    """

    knots: Tensor  # (channels, n, knots): quantiles of each number
    normals: Tensor  # (knots,): those of a normal number
    whitening: Tensor  # (channels, n, n)

    def fit(self, numbers: Tensor) -> Self:
        """Learn the distributions of numbers (samples, channels, n)."""
        samples = len(numbers)
        count = max(2, min(_KNOTS, samples))
        shares = torch.linspace(0, 1, count, dtype=torch.float64, device=numbers.device)
        values = numbers.double()
        found = values.quantile(shares, dim=0).permute(1, 2, 0) if values.numel() else None
        if found is None:
            found = values.new_zeros(*numbers.shape[1:], count)
        size = values.abs().amax(0) if samples else values.sum(0)
        gap = (_GAP * size).clamp_min(torch.finfo(numbers.dtype).tiny)[..., None] / count
        steps = gap * torch.arange(count, device=numbers.device)
        inner = (shares * samples + 0.5) / (samples + 1)
        self.register_buffer("normals", torch.special.ndtri(inner).to(numbers.dtype))
        knots = found + steps - steps.mean(-1, keepdim=True)
        self.register_buffer("knots", knots.to(numbers.dtype).contiguous())
        whitening = _whitening(self._scores(numbers).double())
        self.register_buffer("whitening", whitening.to(numbers.dtype))
        return self

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the distances (samples, channels) of numbers (samples, channels, n)."""
        scores = self._scores(numbers)
        if not scores.shape[2]:
            return scores.sum(2)
        return torch.einsum("scp,cqp->scq", scores, self.whitening).square().mean(2).sqrt()

    def _scores(self, numbers: Tensor) -> Tensor:
        """Return the normal scores of numbers: straight between knots, and beyond them.

        Beyond the outermost knot the slope is that of the last ones together.
        """
        last = self.knots.shape[2] - 1
        tail = min(_TAIL, last)
        wanted = numbers.permute(1, 2, 0).contiguous()
        right = torch.searchsorted(self.knots, wanted)
        below, above = right == 0, right > last
        left = (right - 1).masked_fill(below, 0).masked_fill(above, last - tail)
        right = right.masked_fill(below, tail).clamp_max(last)
        low, high = self.knots.gather(2, left), self.knots.gather(2, right)
        start, stop = self.normals[left], self.normals[right]
        slope = (stop - start) / (high - low)
        found = torch.where(above, stop + (wanted - high) * slope, start + (wanted - low) * slope)
        return found.permute(2, 0, 1)


def _whitening(scores: Tensor) -> Tensor:
    """Return matrices W such that W s has unit covariance, of scores (samples, channels, n).

    The covariance of few samples is mixed with its diagonal.
    """
    samples, _, size = scores.shape
    covariance = torch.einsum("scp,scq->cpq", scores, scores) / max(samples, 1)
    diagonal = covariance.diagonal(dim1=1, dim2=2).clamp_min(1e-2)
    mixed = covariance + torch.diag_embed((1e-2 + size / max(samples, 1)) * diagonal)
    values, vectors = torch.linalg.eigh(mixed)
    return (vectors / values.sqrt()[:, None]).mT.contiguous()
