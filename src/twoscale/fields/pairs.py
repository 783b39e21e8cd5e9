"""Inputs with outputs: the pairs that surrogates are fitted, chosen, calibrated and tested on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.fields.samples import Source
from twoscale.fields.source import ArraySource, first_fields


@dataclass(frozen=True)
class Pairs:
    """Inputs and outputs of the same samples, each a source that knows its space."""

    inputs: Source
    outputs: Source

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def spaces(self) -> tuple[Space, Space]:
        """Return the spaces of inputs and outputs."""
        return self.inputs.space, self.outputs.space

    def on(self, device: torch.device, *, resident: bool = True) -> Pairs:
        """Return the same on a device: moved there, or sent in chunks on each pass."""
        sides = (self.inputs, self.outputs)
        return Pairs(*(side.to(device, resident=resident) for side in sides))

    def first(self, count: int) -> Pairs:
        """Return the first of the pairs, in memory; no others are read."""
        return Pairs(
            *(
                replace(side, fields=ArraySource(first_fields(side.fields, count)))
                for side in (self.inputs, self.outputs)
            )
        )

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Return all inputs and all outputs as one tensor each."""
        return self.inputs.tensor(), self.outputs.tensor()

    def chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and outputs of consecutive samples.

        Fields of another size come in chunks of another length: the longer ones are cut.
        """
        others = self.outputs.fields.chunks()
        other: Tensor | None = None
        for chunk in self.inputs.fields.chunks():
            while len(chunk):
                if other is None or not len(other):
                    other = next(others)
                length = min(len(chunk), len(other))
                yield chunk[:length], other[:length]
                chunk, other = chunk[length:], other[length:]


@dataclass(frozen=True)
class SplitData:
    """Pairs by what they are for: to fit on, to choose weights by, to calibrate bands, to test."""

    training: Pairs
    validation: Pairs
    calibration: Pairs | None = None
    test: Pairs | None = None
