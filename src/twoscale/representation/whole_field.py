"""The field itself as its code, for networks that read it at full resolution."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource
from twoscale.representation.base import Representation
from twoscale.representation.block_pca import channel_units, least_varying
from twoscale.runtime.precision import check_range
from twoscale.runtime.progress import Clock
from twoscale.runtime.stages import TRANSFORM


class Normaliser(nn.Module):
    """One mean and one standard deviation per channel, for all nodes of all training fields."""

    mean: Tensor  # (channels, 1, ...)
    std: Tensor  # (channels, 1, ...)

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels, 1, 1))
        self.register_buffer("std", torch.ones(channels, 1, 1))
        self._spread = torch.ones(channels, dtype=torch.float64)

    def fit(self, fields: FieldSource) -> Self:
        count = 0
        ones: tuple[int, ...] = ()
        shift = total = square = torch.zeros(0)
        for chunk in fields.chunks():
            if not count:  # the first value of all, which may be zero: one shift for all sums
                shift = chunk[0].flatten(1)[:, 0].double()
                ones = (1,) * (chunk.ndim - 2)
                total, square = torch.zeros_like(shift), torch.zeros_like(shift)
            values = chunk.flatten(2).double() - shift[:, None]
            total += values.sum((0, 2))
            square += values.square().sum((0, 2))
            count += values[:, 0].numel()
        mean = total / count
        spread = (square / count - mean.square()).clamp_min(0).sqrt()
        check_range(float(((shift + mean).abs() + spread * count**0.5).max()))
        self.mean = (shift + mean).float().reshape(-1, *ones)
        self.std = torch.where(spread > 0, spread, 1.0).float().reshape(-1, *ones)
        self._spread = spread  # zero where `std` is one in its place
        return self

    def restore(self, mean: Tensor, std: Tensor) -> Self:
        """Take over the mean and the deviation of each channel (channels, 1, ...)."""
        self.mean, self.std, self._spread = mean, std, std.flatten().double()
        return self

    @property
    def mean_and_spread(self) -> tuple[float, float]:
        """Return both of the channel that varies least beside its mean."""
        return least_varying(self.mean.abs().flatten().double(), self._spread)

    def forward(self, fields: Tensor) -> Tensor:
        return (fields - self.mean) / self.std

    def undo(self, fields: Tensor) -> Tensor:
        return fields * self.std + self.mean


class NoFields(Representation):
    """The empty code of inputs that are parameters alone."""

    name = "no-fields"
    title = "no fields"

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("nothing", torch.zeros(0), persistent=False)

    def check(self, space: Space, samples: int) -> None:
        """Accept parameters alone."""

    def _fit(self, source: FieldSource, *, seed: int, clock: Clock, name: str) -> None:
        """There is nothing to fit."""

    def encode(self, fields: Tensor) -> Tensor:
        return fields.flatten(1)

    def decode(self, codes: Tensor) -> Tensor:
        return codes.reshape(codes.shape[0], *self.space.shape)

    def restore(self, tensors: Mapping[str, Tensor], space: Space) -> Self:
        self.space = space
        return self

    @property
    def block_sizes(self) -> list[int]:
        return []

    @property
    def ranks(self) -> dict[str, list[int]]:
        return {}

    @property
    def explained_variance(self) -> dict[str, float]:
        return {"parameters": 1.0}


class WholeField(Representation):
    """All nodes of the field, each channel normalised; nothing is left out.

    It has no parameters. Networks that read and write whole fields use it in place of a PCA.

    Attributes
    ----------
    scale
        The fitted `Normaliser`: one mean and one standard deviation per channel.
    space, code_size
        The space of the fields, and how many numbers a field is.

    Examples
    --------
    >>> WholeField().fit(torch.randn(20, 2, 8, 8)).code_size
    128
    """

    name = "whole-field"
    title = "the field itself"
    compresses = False

    def __init__(self) -> None:
        super().__init__()
        self.scale = Normaliser()

    def check(self, space: Space, samples: int) -> None:
        """Accept any number of fields."""

    def _fit(self, source: FieldSource, *, seed: int, clock: Clock, name: str) -> None:
        with clock.stage(TRANSFORM.name):
            self.scale.fit(source)

    def encode(self, fields: Tensor) -> Tensor:
        self._check_fields(fields)
        return self.scale(fields.to(self.dtype)).flatten(1)

    def decode(self, codes: Tensor) -> Tensor:
        self._check_codes(codes)
        return self.scale.undo(codes.to(self.dtype).unflatten(1, self.space.shape))

    def restore(self, tensors: Mapping[str, Tensor], space: Space) -> Self:
        wanted = (space.channels, *space.ones)
        found = [tensors.get(f"scale.{name}") for name in ("mean", "std")]
        if any(one is None or one.shape != wanted for one in found):
            raise TwoscaleError("the scale of the fields is missing: the artifact is damaged")
        self.space = space
        self.scale.restore(tensors["scale.mean"], tensors["scale.std"])
        return self

    @property
    def unit(self) -> Tensor:
        flat = self.scale.std.reshape(1, -1)
        return channel_units(flat, torch.ones_like(flat, dtype=torch.bool), self.space)

    @property
    def mean_and_spread(self) -> tuple[float, float]:
        return self.scale.mean_and_spread

    @property
    def block_sizes(self) -> list[int]:
        self._require_fit()
        return [prod(self.space.shape)]

    @property
    def ranks(self) -> dict[str, list[int]]:
        return {"field": self.block_sizes}

    @property
    def explained_variance(self) -> dict[str, float]:
        return {"field": 1.0}
