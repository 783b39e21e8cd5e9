"""Codes of input fields with scalar parameters beside them, or of parameters alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor

from twoscale.domain.patches import PatchLayout
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource, MappedSource
from twoscale.representation.base import Representation, subset
from twoscale.representation.transformed import Transformed
from twoscale.runtime.timing import Clock


class WithParameters(Representation):
    """A representation of the fields, followed by the parameters, each with unit variance.

    The parameters are the last channels of a space, the same number at every node. Without any
    other channel there is no `fields` representation, and the code is the parameters.
    """

    name = "with-parameters"
    title = "a code of the fields, followed by the parameters"

    mean: Tensor  # (parameters,)
    scale: Tensor  # (parameters,)

    def __init__(self, fields: Representation | None) -> None:
        super().__init__()
        self.fields = fields
        self.register_buffer("mean", None)
        self.register_buffer("scale", None)

    def check(self, space: Space, samples: int) -> None:
        if not space.parameters:
            raise TwoscaleError(f"fields with parameters were expected, those of {space} have none")
        if (self.fields is None) != (space.field_channels == 0):
            raise TwoscaleError(
                f"there are {space.field_channels} channels beside the parameters: give a "
                "representation of fields if there are any, and none for parameters alone"
            )
        if self.fields is not None:
            self.fields.check(_without(space), samples)

    def _fit(self, source: FieldSource, *, seed: int, clock: Clock, name: str) -> None:
        count, kept = self.space.parameters, self.space.field_channels
        values = torch.cat(
            [chunk[:, kept:].flatten(2)[..., 0].double() for chunk in source.chunks()]
        )
        spread = values.std(0, unbiased=False)
        self.mean = values.mean(0).float()
        self.scale = torch.where(spread > 0, spread, torch.ones(count).to(spread)).float()
        if self.fields is not None:
            inside = _without(self.space)
            seen = MappedSource(source, lambda chunk: chunk[:, :kept], inside.shape)
            self.fields.fit(seen, space=inside, seed=seed, clock=clock, name=name)

    def encode(self, fields: Tensor) -> Tensor:
        self._check_fields(fields)
        kept = self.space.field_channels
        scores = (fields[:, kept:].flatten(2)[..., 0].to(self.mean.dtype) - self.mean) / self.scale
        if self.fields is None:
            return scores
        return torch.cat([self.fields.encode(fields[:, :kept]), scores], 1)

    def decode(self, codes: Tensor) -> Tensor:
        self._check_codes(codes)
        codes = codes.to(self.mean.dtype)
        scores = codes[:, codes.shape[1] - self.space.parameters :]
        values = self.mean + self.scale * scores
        constant = values.reshape(*values.shape, *self.space.ones)
        constant = constant.expand(-1, -1, *self.space.domain.shape)
        if self.fields is None:
            return constant
        inside = self.fields.decode(codes[:, : codes.shape[1] - self.space.parameters])
        return torch.cat([inside, constant], 1)

    def restore(self, tensors: Mapping[str, Tensor], space: Space) -> Self:
        wanted = (space.parameters,)
        if any(name not in tensors or tensors[name].shape != wanted for name in ("mean", "scale")):
            raise TwoscaleError("the scale of the parameters is missing: the artifact is damaged")
        self.space = space
        self.mean, self.scale = tensors["mean"], tensors["scale"]
        if self.fields is not None:
            self.fields.restore(subset(tensors, "fields"), _without(space))
        return self

    @property
    def code_spread(self) -> Tensor:
        own = torch.ones_like(self.scale)
        return own if self.fields is None else torch.cat([self.fields.code_spread, own])

    @property
    def unit(self) -> Tensor:
        own = self.scale.reshape(-1, *self.space.ones)
        return own if self.fields is None else torch.cat([self.fields.unit, own])

    @property
    def layout(self) -> PatchLayout | None:
        return None if self.fields is None else self.fields.layout

    @property
    def mean_and_spread(self) -> tuple[float, float] | None:
        return None if self.fields is None else self.fields.mean_and_spread

    @property
    def block_sizes(self) -> list[int]:
        self._require_fit()
        inside = [] if self.fields is None else self.fields.block_sizes
        return [*inside, self.space.parameters]

    @property
    def ranks(self) -> dict[str, list[int]]:
        inside = {} if self.fields is None else self.fields.ranks
        return {**inside, "parameters": [self.space.parameters]}

    @property
    def explained_variance(self) -> dict[str, float]:
        return {"parameters": 1.0} if self.fields is None else self.fields.explained_variance


def beside_parameters(inputs: Representation, space: Space) -> Representation:
    """Return a representation of a space's fields with its parameters beside their code.

    Representations that keep whole fields take parameters as channels. Transforms come first.
    """
    if isinstance(inputs, Transformed):
        fields = beside_parameters(inputs.fields, space)
        return inputs if fields is inputs.fields else Transformed(inputs.transform, fields)
    if not inputs.compresses or isinstance(inputs, WithParameters):
        return inputs
    return WithParameters(inputs if space.field_channels else None)


def _without(space: Space) -> Space:
    """Return the space of the fields alone."""
    names = None if space.names is None else space.names[: space.field_channels]
    return Space(space.grid, space.field_channels, names=names)
