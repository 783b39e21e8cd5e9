"""What training inputs look like, in few numbers; and which inputs are unlike them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.fields.grid import Space
from twoscale.fields.source import FieldSource, first_fields
from twoscale.representation.base import subset
from twoscale.trust.conformal import conformal_quantile
from twoscale.trust.normal_scores import NormalScores
from twoscale.trust.state import restore_buffers

_SEEN, _VALUES = 2000, 2**28  # training inputs and their values that are looked at, at most
_NODES = 16  # of the thinned field along an axis, at most
_LINES = 8  # rows and columns on which differences are taken, at most
_MODES = 32  # of thinned fields
_FLOOR = 1e-12  # of mean squares, beside those of the training inputs
_FEW_WIDER = 1.5  # times the largest distance is the limit of few inputs
_LEVEL = 0.975  # of fresh inputs of the same kind, that many are known


@dataclass(frozen=True)
class Familiarity:
    """How far inputs are from the training inputs, of each sample and channel."""

    roughness: Tensor  # (samples, channels): distance of differences between nodes
    code: Tensor  # distance of the code, and of what it misses
    values: Tensor  # distance of the least and largest value
    missed: Tensor  # the part of the thinned field that its code misses, a ratio of norms

    @property
    def unusual(self) -> Tensor:
        """Return the largest distance of each sample, (samples,); above 1 it is outside."""
        return torch.stack([self.roughness, self.code, self.values]).amax((0, 2))

    @property
    def outside(self) -> Tensor:
        """Return whether each sample is unlike the training inputs in some way, (samples,)."""
        return self.unusual > 1


class KnownInputs(nn.Module):
    """The range of the training inputs.

    Three things are looked at in each channel: the roughness, which is the mean squares of
    differences between nodes 1, 2, 4, ... apart; the PCA code of a thinned field, by its distance
    from the mean, and what it misses; the least and the largest value. An input is unlike the
    training inputs if one of these is farther from theirs than for nearly all other fresh inputs.
    Too smooth is as unusual as too rough, and too close to the mean as unusual as too far. Of a
    scalar parameter the value alone is looked at.
    """

    unit: Tensor  # (channels, 1, 1): the size of each channel's deviations from its mean
    mean: Tensor  # (fields, nodes): the mean thinned field
    modes: Tensor  # (fields, modes, nodes): PCA of thinned fields
    spread: Tensor  # (fields, modes): standard deviations of codes
    floor: Tensor  # (fields, lags + 2): least mean squares
    limit: Tensor  # (): largest distance of known inputs

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space = space
        self.scores = nn.ModuleList(NormalScores() for _ in range(3))

    @torch.no_grad()
    def fit(self, inputs: FieldSource) -> Self:
        """Learn what the first of some training inputs look like.

        A third of them is left out of that. The limit is chosen such that nearly all of these, and
        so of all other inputs of the same kind, are known.
        """
        fields = _some(inputs)
        fitted, others = fields.tensor_split([-(-2 * len(fields) // 3)])
        self.register_buffer("unit", _units(fitted))
        seen = fitted[:, : self.space.field_channels]
        thinned = self._thinned(seen)
        self.register_buffer("mean", thinned.mean(0))
        self._fit_modes(thinned - self.mean, min(_MODES, max(1, len(fitted) // 4)))
        squares = self._squares(seen)[0]
        self.register_buffer("floor", _FLOOR * squares.mean(0) + torch.finfo(squares.dtype).tiny)
        for place, view in enumerate(self._views(fitted)[0]):
            self.scores[place] = NormalScores().fit(view)
        self.register_buffer("limit", torch.ones((), device=fields.device))
        unusual = self(others if len(others) else fitted).unusual
        limit = conformal_quantile(unusual, _LEVEL)
        self.limit.fill_(limit if math.isfinite(limit) else _FEW_WIDER * float(unusual.max()))
        return self

    @torch.no_grad()
    def forward(self, fields: Tensor) -> Familiarity:
        """Return how familiar inputs (samples, channels, height, width) are."""
        views, missed = self._views(fields)
        distances = [
            scores(view) / self.limit for scores, view in zip(self.scores, views, strict=True)
        ]
        roughness, code = (self._beside_parameters(one) for one in distances[:2])
        return Familiarity(roughness, code, distances[2], self._beside_parameters(missed))

    def _beside_parameters(self, values: Tensor) -> Tensor:
        """Return values of the field channels, and zeros for the parameters after them."""
        return nn.functional.pad(values, (0, self.space.parameters))

    def _views(self, fields: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the three things, each (samples, channels, n), and what codes miss."""
        seen = fields[:, : self.space.field_channels]
        squares, missed = self._squares(seen)
        logarithms = (squares + self.floor).log()
        # Both apart are many times faster than aminmax.
        extremes = torch.stack([fields.amin((2, 3)), fields.amax((2, 3))], 2) / self.unit[:, 0]
        return [logarithms[..., :-2], logarithms[..., -2:], extremes], missed

    def _squares(self, fields: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean squares of differences, of codes, and of what these miss; and its share."""
        deviations = self._thinned(fields) - self.mean
        codes = torch.einsum("scn,ckn->sck", deviations, self.modes)
        whole = deviations.square().sum(2)
        rest = (whole - codes.square().sum(2)).clamp_min(0)
        code = (codes / self.spread).square().mean(2)
        missed = (rest / whole.clamp_min(torch.finfo(whole.dtype).tiny)).sqrt()
        differences = _differences(fields, self._unit_of(fields))
        return torch.cat([differences, torch.stack([code, rest], 2)], 2), missed

    def _thinned(self, fields: Tensor) -> Tensor:
        """Return the fields at few nodes, (samples, channels, nodes)."""
        rows, columns = (-(-side // _NODES) for side in fields.shape[2:])
        few = fields[:, :, rows // 2 :: rows, columns // 2 :: columns]
        return (few / self._unit_of(fields)).flatten(2)

    def _unit_of(self, fields: Tensor) -> Tensor:
        """Return the units of the first channels, as many as some fields have."""
        return self.unit[: fields.shape[1]]

    def _fit_modes(self, deviations: Tensor, count: int) -> None:
        """Keep the first modes of each channel's thinned fields."""
        exact = deviations.double()
        covariance = torch.einsum("scn,scm->cnm", exact, exact) / len(exact)
        values, vectors = torch.linalg.eigh(covariance)
        count = min(count, values.shape[1])
        values, vectors = values.flip(1)[:, :count], vectors.flip(2)[:, :, :count]
        least = (1e-12 * values[:, :1]).clamp_min(torch.finfo(deviations.dtype).tiny)
        self.register_buffer("modes", vectors.mT.to(deviations).contiguous())
        self.register_buffer("spread", values.maximum(least).sqrt().to(deviations))

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from tensors, named as in `state_dict`."""
        for place in range(len(self.scores)):
            self.scores[place] = restore_buffers(NormalScores(), subset(tensors, f"scores.{place}"))
        return restore_buffers(self, tensors)


def _some(inputs: FieldSource) -> Tensor:
    """Return the first inputs, as many as are looked at."""
    _, *sides = inputs.shape
    return first_fields(inputs, min(_SEEN, max(1, _VALUES // math.prod(sides))))


def _units(fields: Tensor) -> Tensor:
    """Return the standard deviation of each channel; of a constant one its size, or 1."""
    exact = fields.double()
    spread = exact.std((0, 2, 3), correction=0) if len(fields) else exact.sum((0, 2, 3))
    size = exact.abs().amax((0, 2, 3)) if len(fields) else spread
    unit = torch.where(spread > 0, spread, torch.where(size > 0, size, 1.0))
    return unit.float().clamp_min(torch.finfo(torch.float32).tiny)[:, None, None]


def _differences(fields: Tensor, unit: Tensor) -> Tensor:
    """Return mean squares (samples, channels, lags) of differences of nodes 1, 2, 4, ... apart.

    Along some rows and columns, and up to half of the shorter axis that has more than one node.
    """
    axes = [axis for axis in (2, 3) if fields.shape[axis] > 1]
    lines = {axis: _lines(fields, axis) / unit for axis in axes}
    shortest = min((fields.shape[axis] for axis in axes), default=0)
    found = []
    for lag in (2**power for power in range(shortest.bit_length())):
        if 2 * lag < shortest:
            parts = [_mean_square(_difference(one, axis, lag)) for axis, one in lines.items()]
            found.append(torch.stack(parts).mean(0))
    return torch.stack(found, 2) if found else fields.new_zeros(*fields.shape[:2], 0)


def _lines(fields: Tensor, axis: int) -> Tensor:
    """Return some of the lines along an axis."""
    across = 5 - axis
    step = -(-fields.shape[across] // _LINES)
    places = slice(step // 2, None, step)
    chosen = fields[:, :, places] if across == 2 else fields[..., places]
    return chosen


def _difference(fields: Tensor, axis: int, lag: int) -> Tensor:
    length = fields.shape[axis] - lag
    return fields.narrow(axis, lag, length) - fields.narrow(axis, 0, length)


def _mean_square(values: Tensor) -> Tensor:
    flat = values.flatten(2)
    return torch.linalg.vector_norm(flat, dim=2).square() / flat.shape[2]
