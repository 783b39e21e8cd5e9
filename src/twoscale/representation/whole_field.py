"""The field itself as its code, for networks that read it at full resolution."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource, as_source, gather, map_fields
from twoscale.representation.base import Representation
from twoscale.runtime.precision import check_range, unit_of
from twoscale.runtime.timing import Clock


class Normaliser(nn.Module):
    """One mean and one standard deviation for all nodes of all training fields."""

    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))
        self._spread = 1.0  # of the latest fit: zero where `std` is one in its place

    def fit(self, fields: FieldSource) -> Self:
        total = square = shift = count = 0.0
        device = None
        for chunk in fields.chunks():
            device = chunk.device
            if not count:  # the first value of all, which may be zero: one shift for all sums
                shift = float(chunk.flatten()[0])
            values = chunk.double() - shift
            total += float(values.sum())
            square += float(values.square().sum())
            count += values.numel()
        mean = total / count
        spread = max(square / count - mean**2, 0.0) ** 0.5
        check_range(abs(shift + mean) + spread * count**0.5)
        self._spread = spread
        self.mean = torch.tensor(shift + mean, dtype=torch.float32, device=device)
        self.std = torch.tensor(spread or 1.0, dtype=torch.float32, device=device)
        return self

    @property
    def mean_and_spread(self) -> tuple[float, float]:
        return abs(float(self.mean)), self._spread

    def apply_to(self, fields: FieldSource) -> Tensor:
        """Return all fields, normalised, as one tensor."""
        return gather(map_fields(fields, self))

    def forward(self, fields: Tensor) -> Tensor:
        return (fields - self.mean) / self.std

    def undo(self, fields: Tensor) -> Tensor:
        return fields * self.std + self.mean


class WholeField(Representation):
    """All nodes of the field, normalised; nothing is left out."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__()
        self.shape = shape
        self.scale = Normaliser()

    def extra_repr(self) -> str:
        return f"shape={self.shape}"

    def check(self, shape: tuple[int, int], samples: int) -> None:
        if shape != self.shape:
            raise TwoscaleError(f"fields of {self.shape} were expected, these are {shape}")

    def fit(
        self,
        fields: Tensor | FieldSource,
        *,
        seed: int = 0,
        clock: Clock | None = None,
        name: str = "output",
    ) -> Self:
        with (clock or Clock()).stage("transform"):
            self.scale.fit(as_source(fields))
        return self

    def encode(self, fields: Tensor) -> Tensor:
        return self.scale(fields.to(self.dtype)).flatten(1)

    def decode(self, codes: Tensor) -> Tensor:
        return self.scale.undo(codes.to(self.dtype)).unflatten(1, self.shape)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        try:
            self.scale.mean, self.scale.std = tensors["scale.mean"], tensors["scale.std"]
        except KeyError as error:
            raise TwoscaleError("the scale of the input fields is missing") from error
        return self

    @property
    def unit(self) -> float:
        return unit_of(float(self.scale.std))

    @property
    def mean_and_spread(self) -> tuple[float, float]:
        return self.scale.mean_and_spread

    @property
    def block_sizes(self) -> list[int]:
        return [prod(self.shape)]

    @property
    def ranks(self) -> dict[str, list[int]]:
        return {"field": self.block_sizes}

    @property
    def explained_variance(self) -> dict[str, float]:
        return {"field": 1.0}
