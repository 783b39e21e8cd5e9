"""Inputs with outputs: the pairs that surrogates are fitted, chosen, calibrated and tested on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.fields.samples import Source
from twoscale.fields.source import Batch


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
        """Return the first of the pairs, which are read on each pass; no others are read."""
        return Pairs(self.inputs.first(count), self.outputs.first(count))

    def loaded(self) -> Pairs:
        """Return the same in memory."""
        return Pairs(self.inputs.loaded(), self.outputs.loaded())

    def tensors(self) -> tuple[Batch, Tensor]:
        """Return all inputs, and all outputs as one tensor."""
        return self.inputs.batch(), self.outputs.batch().fields

    def chunks(self) -> Iterator[tuple[Batch, Tensor]]:
        """Yield inputs and outputs of consecutive samples.

        Fields of another size come in chunks of another length: the longer ones are cut.
        """
        others = self.outputs.fields.chunks()
        other: Tensor | None = None
        for batch in self.inputs.batches.chunks():
            while len(batch):
                if other is None or not len(other):
                    other = next(others)
                length = min(len(batch), len(other))
                yield batch[:length], other[:length]
                batch, other = batch[length:], other[length:]


@dataclass(frozen=True)
class SplitData:
    """Pairs by what they are for: to fit on, to choose weights by, to calibrate bands, to test."""

    training: Pairs
    validation: Pairs
    calibration: Pairs | None = None
    test: Pairs | None = None
