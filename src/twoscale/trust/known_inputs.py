"""What training inputs look like, in few numbers; and which inputs are unlike them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.fields.grid import Space
from twoscale.fields.source import ArraySource, FieldSource, fields_at, random_rows
from twoscale.representation.base import subset
from twoscale.trust.conformal import conformal_quantile
from twoscale.trust.normal_scores import NormalScores
from twoscale.trust.roughness import NeighbourSquares, lag_squares
from twoscale.trust.state import restore_buffers

_SEEN, _VALUES = 2000, 2**28  # training inputs and their values that are looked at, at most
_NODES = 16  # of the thinned field along an axis, at most
_MODES = 32  # of thinned fields
_FLOOR = 1e-12  # of mean squares, beside those of the training inputs
_LARGEST = 1e30  # of mean squares, in units: single precision ends a little later
_FARTHEST = 1e15  # of values of thinned fields from their mean, in units
_SMALL = 1e-6  # fields of smaller units, or of larger ones than its inverse, are scaled first
_FEW_WIDER = 1.5  # times the largest distance is the limit of few inputs
_LEVEL = 0.975  # of fresh inputs of the same kind, that many are known

KINDS = ("roughness", "code", "values")
"""The kinds of distances, in their order."""


@dataclass(frozen=True)
class Familiarity:
    """How far inputs are from the training inputs.

    Distances of each sample and channel are of three kinds: of the roughness, of the code and what
    it misses, of the least and largest value. They are never NaN.
    """

    distances: Tensor  # (samples, 3, channels)
    missed: Tensor  # (samples, channels): the part of the thinned field that its code misses

    @property
    def by_name(self) -> dict[str, Tensor]:
        """Return each kind of distance, and what codes miss, all (samples, channels)."""
        return dict(zip(KINDS, self.distances.unbind(1), strict=True)) | {"missed": self.missed}

    @property
    def unusual(self) -> Tensor:
        """Return the largest distance of each sample, (samples,); above 1 it is outside."""
        return self.distances.amax((1, 2))

    @property
    def outside(self) -> Tensor:
        """Return whether each sample is unlike the training inputs in some way, (samples,)."""
        return ~(self.unusual <= 1)


class KnownInputs(nn.Module):
    """The range of the training inputs.

    Three things are looked at in each channel. The roughness: mean squares of differences between
    neighbours, over all nodes and in the roughest block of nodes, and between nodes of a thinned
    field. The PCA code of that thinned field: its distance from the mean, and what it misses. The
    least and the largest value. An input is unlike the training inputs if one of these is farther
    from theirs than for nearly all other fresh inputs. Too smooth is as unusual as too rough, and
    too close to the mean as unusual as too far. Of a scalar parameter the value alone is looked at.
    """

    unit: Tensor  # (channels, 1, 1): the size of each channel's deviations from its mean
    mean: Tensor  # (fields, 1, rows, columns): the mean thinned field
    modes: Tensor  # (fields, modes, nodes): PCA of thinned fields
    spread: Tensor  # (fields, modes): standard deviations of codes
    floor: Tensor  # (fields, squares): least mean squares
    limit: Tensor  # (): largest distance of known inputs

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space = space
        self.neighbours = NeighbourSquares(space.grid)
        self.scores = NormalScores()
        self.scale: Tensor  # (fields, 1): of mean squares, 1 / unit²
        self.weights: Tensor  # (fields, modes, 2): of squared codes, for their distance and norm

    @torch.no_grad()
    def fit(self, inputs: FieldSource) -> Self:
        """Learn what some training inputs look like, drawn at random from all of them.

        A third of them is left out of that, at random as well. The limit is chosen such that nearly
        all of these, and so of all other inputs of the same kind, are known.
        """
        samples, *sides = inputs.shape
        seen = min(_SEEN, max(1, _VALUES // math.prod(sides)))
        fields = fields_at(inputs, random_rows(samples, seen))
        fitted, others = _thirds(len(fields), fields.device)
        self.register_buffer("unit", _units(fields))
        thinned = self._thinned(fields[:, : self.space.field_channels])[:, fitted]
        self.register_buffer("mean", thinned.mean(1, keepdim=True))
        self._fit_modes((thinned - self.mean).flatten(2), min(_MODES, max(1, len(fitted) // 4)))
        self._prepare()
        parts = [self._seen(chunk)[:2] for chunk in ArraySource(fields).chunks()]
        squares, extremes = (torch.cat(one) for one in zip(*parts, strict=True))
        tiny = torch.finfo(torch.float32).tiny
        self.register_buffer("floor", _FLOOR * squares[fitted].mean(0) + tiny)
        numbers = self._numbers(squares, extremes)
        self.scores.fit(numbers[fitted], self._groups(squares.shape[2]))
        self.register_buffer("limit", numbers.new_ones(()))
        unusual = self._distances(numbers[others if len(others) else fitted]).amax((1, 2))
        limit = conformal_quantile(unusual, _LEVEL)
        if not math.isfinite(limit):
            limit = _FEW_WIDER * float(unusual.max())
        self.limit.fill_(max(limit, 1.0))  # inputs that are all alike are at no distance
        return self

    @torch.no_grad()
    def forward(self, fields: Tensor) -> Familiarity:
        """Return how familiar inputs (samples, channels, height, width) are."""
        squares, extremes, missed = self._seen(fields)
        return Familiarity(self._distances(self._numbers(squares, extremes)), missed)

    def _distances(self, numbers: Tensor) -> Tensor:
        """Return the distances (samples, 3, channels) of numbers (samples, n)."""
        found = (self.scores(numbers) / self.limit).unflatten(1, (4, self.space.channels))
        return torch.cat([found[:, :2].amax(1, keepdim=True), found[:, 2:]], 1)

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
            for channel in range(self.space.channels):
                length = count if kind == 3 or channel < self.space.field_channels else 0
                groups.append(slice(start, start + length))
                start += length
        return groups

    def _seen(self, fields: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean squares (samples, fields, n), extremes, and what codes miss; in float64.

        Mean squares that are too large for single precision are `_LARGEST`.
        """
        seen = fields[:, : self.space.field_channels]
        deviations = (self._thinned(seen) - self.mean).clamp_(-_FARTHEST, _FARTHEST)
        flat = deviations.flatten(2)
        codes = (flat @ self.modes.mT).square_()
        code, kept = (codes.double() @ self.weights).unbind(2)
        whole = flat.square().sum(2).double()
        rest = (whole - kept).clamp_min_(0)
        missed = (rest / whole).sqrt_().nan_to_num_(0.0).T
        coarse = torch.stack([*lag_squares(deviations), code, rest], 2)
        if self._rescales:
            seen = seen / self.unit[: seen.shape[1]]
        near = self.neighbours(seen) * self.scale
        squares = torch.cat([near, coarse.transpose(0, 1)], 2).nan_to_num_(_LARGEST, _LARGEST)
        # Both apart are many times faster than aminmax.
        extremes = torch.stack([fields.amin((2, 3)), fields.amax((2, 3))], 2) / self.unit[:, 0]
        if self.space.parameters:
            missed = nn.functional.pad(missed, (0, self.space.parameters))
        return squares, extremes, missed

    def _prepare(self) -> None:
        """Make what follows from the fitted numbers, and is not stored."""
        fields = self.unit[: self.space.field_channels, 0].double()
        # The squares of usual fields are scaled afterwards, which costs less.
        self._rescales = not bool(((fields > _SMALL) & (fields < 1 / _SMALL)).all())
        scale = torch.ones_like(fields) if self._rescales else fields.square().reciprocal()
        self.register_buffer("scale", scale, persistent=False)
        code = self.spread.double().square().reciprocal() / max(1, self.spread.shape[1])
        weights = torch.stack([code, torch.ones_like(code)], 2)
        self.register_buffer("weights", weights, persistent=False)

    def _thinned(self, fields: Tensor) -> Tensor:
        """Return the fields at few nodes, (channels, samples, rows, columns), in units."""
        rows, columns = (-(-side // _NODES) for side in fields.shape[2:])
        few = fields[:, :, rows // 2 :: rows, columns // 2 :: columns]
        return (few / self.unit[: fields.shape[1]]).transpose(0, 1)

    def _fit_modes(self, deviations: Tensor, count: int) -> None:
        """Keep the first modes of each channel's thinned fields (channels, samples, nodes)."""
        exact = deviations.double()
        values, vectors = torch.linalg.eigh(exact.mT @ exact / max(1, exact.shape[1]))
        count = min(count, values.shape[1])
        values, vectors = values.flip(1)[:, :count], vectors.flip(2)[:, :, :count]
        least = (1e-12 * values[:, :1]).clamp_min(torch.finfo(deviations.dtype).tiny)
        self.register_buffer("modes", vectors.mT.to(deviations).contiguous())
        self.register_buffer("spread", values.maximum(least).sqrt().to(deviations))

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from tensors, named as in `state_dict`."""
        self.scores.restore(subset(tensors, "scores"))
        restore_buffers(self, tensors)._prepare()
        return self


def _units(fields: Tensor) -> Tensor:
    """Return the standard deviation of each channel; of a constant one its size, or 1."""
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
    return unit.float().clamp_min(torch.finfo(torch.float32).tiny)[:, None, None]


def _thirds(samples: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the numbers of two thirds of the samples, drawn at random, and those of the others."""
    first = random_rows(samples, -(-2 * samples // 3), seed=1)
    left = torch.ones(samples, dtype=torch.bool)
    left[first] = False
    return first.to(device), left.nonzero()[:, 0].to(device)
