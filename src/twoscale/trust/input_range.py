"""What training inputs look like, in few numbers; and which inputs are unlike them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.domain.grid import as_planes
from twoscale.domain.space import Space
from twoscale.fields.samples import Source
from twoscale.fields.source import ArraySource, Batch, BatchSource, fields_at, random_rows
from twoscale.representation.base import subset
from twoscale.trust.statistics import (
    NeighbourSquares,
    NormalScores,
    conformal_quantile,
    lag_squares,
    restore_buffers,
)

_SEEN, _VALUES = 2000, 2**28  # training inputs and their values that are looked at, at most
_NODES = 16  # of the thinned field along an axis, at most
_MODES = 32  # of thinned fields
_FLOOR = 1e-12  # of mean squares, beside those of the training inputs
_LARGEST = 1e38  # of mean squares: single precision ends a little later
_SMALL = 1e-6  # channels that vary by less, or by more than its inverse, are scaled first
_FEW_WIDER = 1.5  # times the largest distance is the limit of few inputs
_LEVEL = 0.975  # of fresh inputs of the same kind, that many are known

KINDS = ("roughness", "code", "values")
"""The kinds of distances, in their order."""


@dataclass(frozen=True)
class Familiarity:
    """How far inputs are from the training inputs, of each sample and channel.

    Distances are never NaN. The first two kinds are both of the roughness: of all neighbours and
    the roughest block, and of nodes farther apart.
    """

    distances: Tensor  # (samples, 4, channels)
    coarse: Tensor  # (fields, samples): squared norm of the thinned field's deviation
    rest: Tensor  # (fields, samples): what the code misses of it

    @property
    def by_name(self) -> dict[str, Tensor]:
        """Return the distances by their names, and what codes miss, all (samples, channels)."""
        near, far, code, values = self.distances.unbind(1)
        missed = (self.rest / self.coarse).sqrt().nan_to_num(0.0).T
        missed = nn.functional.pad(missed, (0, near.shape[1] - missed.shape[1]))
        found = (near.maximum(far), code, values, missed)
        return dict(zip((*KINDS, "missed"), found, strict=True))

    @property
    def unusual(self) -> Tensor:
        """Return the largest distance of each sample, (samples,); above 1 it is outside."""
        return self.distances.amax((1, 2))

    @property
    def outside(self) -> Tensor:
        """Return whether each sample is unlike the training inputs in some way, (samples,)."""
        return ~(self.unusual <= 1)


class InputRange(nn.Module):
    """The range of the training inputs.

    Three things are looked at in each channel. The roughness: mean squares of differences between
    neighbours, over all nodes and in the roughest block of nodes, and between nodes of a thinned
    field. The PCA code of that thinned field: its distance from the mean, and what it misses. The
    least and the largest value. An input is unlike the training inputs if one of these is farther
    from theirs than for nearly all other fresh inputs. Too smooth is as unusual as too rough, and
    too close to the mean as unusual as too far. Of a scalar parameter the value alone is looked at.
    """

    unit: Tensor  # (channels + parameters, 1, 1): what inputs are divided by, if tiny or huge
    mean: Tensor  # (fields, 1, rows, columns): the mean thinned field
    modes: Tensor  # (fields, nodes, modes): PCA of thinned fields
    weights: Tensor  # (fields, modes, 2): of squared codes, for their distance and their norm
    floor: Tensor  # (fields, squares): least mean squares

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space = space
        self.neighbours = NeighbourSquares(space.grid)
        self.scores = NormalScores()
        self._divides = False

    @torch.no_grad()
    def fit(self, inputs: Source) -> Self:
        """Learn what some training inputs look like, drawn at random from all of them.

        A third of them is left out of that, at random as well. The limit is chosen such that nearly
        all of these, and so of all other inputs of the same kind, are known.
        """
        space = inputs.space
        seen = min(_SEEN, max(1, _VALUES // max(1, math.prod(space.shape))))
        rows = random_rows(len(inputs), seen)
        fields = as_planes(fields_at(inputs.fields, rows))
        scalars = inputs.scalars[rows.to(inputs.scalars.device)].to(fields.device)
        fitted, others = _thirds(len(fields), fields.device)
        self.register_buffer("unit", torch.cat([_units(fields), _units(scalars[..., None, None])]))
        self._prepare()
        thinned = self._thinned(self._divided(fields, scalars)[0])[:, fitted]
        self.register_buffer("mean", thinned.mean(1, keepdim=True))
        self._fit_modes((thinned - self.mean).flatten(2), min(_MODES, max(1, len(fitted) // 4)))
        chunks = BatchSource(ArraySource(fields), scalars).chunks()
        parts = [self._seen(chunk.fields, chunk.parameters)[:2] for chunk in chunks]
        squares, extremes = (torch.cat(one) for one in zip(*parts, strict=True))
        tiny = torch.finfo(torch.float32).tiny
        self.register_buffer("floor", _FLOOR * squares[fitted].mean(0) + tiny)
        numbers = self._numbers(squares, extremes)
        self.scores.fit(numbers[fitted], self._groups(squares.shape[2]))
        unusual = self.scores(numbers[others if len(others) else fitted]).amax(1)
        limit = conformal_quantile(unusual, _LEVEL)
        if not math.isfinite(limit):
            limit = _FEW_WIDER * float(unusual.max())
        self.scores.scale(max(limit, 1.0))  # inputs that are all alike are at no distance
        return self

    @torch.no_grad()
    def forward(self, inputs: Batch) -> Familiarity:
        """Return how familiar inputs are."""
        fields = as_planes(inputs.fields)
        squares, extremes, coarse, rest = self._seen(fields, inputs.parameters)
        distances = self.scores(self._numbers(squares, extremes))
        return Familiarity(distances.view(len(inputs), 4, self._count), coarse, rest)

    @property
    def _count(self) -> int:
        """Return the number of channels and parameters."""
        return self.space.channels + self.space.parameters

    def _numbers(self, squares: Tensor, extremes: Tensor) -> Tensor:
        """Return all that is looked at: roughness of the fields, codes, extremes; (samples, n)."""
        logarithms = (squares + self.floor).log_()
        sizes = self._sizes(squares.shape[2])
        parts = (*logarithms.split(sizes[:3], 2), extremes)
        return torch.cat([part.flatten(1) for part in parts], 1)

    def _sizes(self, squares: int) -> tuple[int, int, int, int]:
        """Return how many numbers of a channel there are of each kind."""
        near = min(2, squares - 2)
        return near, squares - 2 - near, 2, 2

    def _groups(self, squares: int) -> list[slice]:
        """Return which numbers tell a distance: of each kind, one group for each channel."""
        groups, start = [], 0
        for kind, count in enumerate(self._sizes(squares)):
            for channel in range(self._count):
                length = count if kind == 3 or channel < self.space.channels else 0
                groups.append(slice(start, start + length))
                start += length
        return groups

    def _seen(self, fields: Tensor, scalars: Tensor) -> tuple[Tensor, ...]:
        """Return mean squares (samples, fields, n) and extremes; norms of thinned fields.

        Mean squares that are too large for single precision are `_LARGEST`.
        """
        fields, scalars = self._divided(fields, scalars)
        deviations = self._thinned(fields) - self.mean
        flat = deviations.flatten(2)
        code, kept = (torch.matmul(flat, self.modes).square_() @ self.weights).unbind(2)
        coarse = flat.square().sum(2)
        rest = (coarse - kept).clamp_min_(0)
        thinned = torch.stack([*lag_squares(deviations), code, rest], 2).transpose(0, 1)
        near = self.neighbours(fields)
        squares = torch.cat([near, thinned], 2).double().nan_to_num_(_LARGEST, _LARGEST)
        # Both apart are many times faster than aminmax.
        extremes = torch.stack([fields.amin((2, 3)), fields.amax((2, 3))], 2)
        extremes = torch.cat([extremes, scalars[..., None].expand(-1, -1, 2)], 1)
        return squares, extremes, coarse, rest

    def _divided(self, fields: Tensor, scalars: Tensor) -> tuple[Tensor, Tensor]:
        """Return fields and parameters whose squares are in the range of single precision."""
        if not self._divides:
            return fields, scalars
        count = self.space.channels
        return fields / self.unit[:count], scalars / self.unit[count:, 0, 0]

    def _prepare(self) -> None:
        self._divides = not bool((self.unit == 1).all())

    def _thinned(self, fields: Tensor) -> Tensor:
        """Return the field channels at few nodes, (channels, samples, rows, columns)."""
        rows, columns = (-(-side // _NODES) for side in fields.shape[2:])
        few = fields[:, :, rows // 2 :: rows, columns // 2 :: columns]
        return few.transpose(0, 1)

    def _fit_modes(self, deviations: Tensor, count: int) -> None:
        """Keep the first modes of each channel's thinned fields (channels, samples, nodes)."""
        exact = deviations.double()
        values, vectors = torch.linalg.eigh(exact.mT @ exact / max(1, exact.shape[1]))
        count = min(count, values.shape[1])
        values, vectors = values.flip(1)[:, :count], vectors.flip(2)[:, :, :count]
        least = (1e-12 * values[:, :1]).clamp_min(torch.finfo(deviations.dtype).tiny)
        self.register_buffer("modes", vectors.to(deviations).contiguous())
        code = values.maximum(least).reciprocal() / max(1, count)
        weights = torch.stack([code, torch.ones_like(code)], 2)
        self.register_buffer("weights", weights.to(deviations))

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from tensors, named as in `state_dict`."""
        self.scores.restore(subset(tensors, "scores"))
        restore_buffers(self, tensors)._prepare()
        return self


def _units(fields: Tensor) -> Tensor:
    """Return what each channel of images is divided by, (channels, 1, 1): 1 if its size is usual.

    Else it is its standard deviation; of a constant channel its size.
    """
    nothing = torch.zeros(fields.shape[1], dtype=torch.float64, device=fields.device)
    count = max(1, fields.numel() // max(1, fields.shape[1]))
    mean, variance, size = nothing, nothing, nothing
    for chunk in ArraySource(fields).chunks():
        mean = mean + chunk.double().sum((0, 2, 3)) / count
    for chunk in ArraySource(fields).chunks():
        away = chunk.double() - mean[:, None, None]
        variance = variance + away.square().sum((0, 2, 3)) / count
        size = size.maximum(chunk.abs().amax((0, 2, 3)).double())
    # The mean of equal values differs from them by rounding.
    spread = variance.sqrt() * (variance.sqrt() > 1e-12 * size)
    unit = torch.where(spread > 0, spread, torch.where(size > 0, size, 1.0))
    usual = (unit > _SMALL) & (unit < 1 / _SMALL)
    return (
        unit.masked_fill(usual, 1.0)
        .float()
        .clamp_min(torch.finfo(torch.float32).tiny)[:, None, None]
    )


def _thirds(samples: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the numbers of two thirds of the samples, drawn at random, and those of the others."""
    first = random_rows(samples, -(-2 * samples // 3), seed=1)
    left = torch.ones(samples, dtype=torch.bool)
    left[first] = False
    return first.to(device), left.nonzero()[:, 0].to(device)
