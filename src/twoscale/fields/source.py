"""Fields as a sequence of chunks, so that every fit is a number of passes over samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from torch import Tensor

from twoscale.runtime.threads import ahead

_CHUNK_VALUES = 2**22  # 16 MiB of float32: what a CPU's allocator reuses without new pages
_CHUNK_VALUES_CUDA = 2**24


class FieldSource(Protocol):
    """Fields that can be passed over any number of times, in a fixed order."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return (samples, height, width)."""
        ...

    def chunks(self) -> Iterator[Tensor]:
        """Yield consecutive batches (batch, height, width)."""
        ...

    def to(self, device: torch.device) -> FieldSource:
        """Return the same fields, delivered on `device`."""
        ...


def chunk_length(height: int, width: int, *, cuda: bool = False) -> int:
    """Return how many fields of this size make one chunk."""
    return max(1, (_CHUNK_VALUES_CUDA if cuda else _CHUNK_VALUES) // (height * width))


def slices(samples: int, length: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `length` that cover `samples`."""
    for start in range(0, samples, length):
        yield slice(start, min(start + length, samples))


class ArraySource:
    """Fields held in one tensor."""

    def __init__(self, fields: Tensor) -> None:
        self.fields = fields

    @property
    def shape(self) -> tuple[int, int, int]:
        samples, height, width = self.fields.shape
        return samples, height, width

    def chunks(self) -> Iterator[Tensor]:
        samples, height, width = self.shape
        length = chunk_length(height, width, cuda=self.fields.is_cuda)
        for part in slices(samples, length):
            yield self.fields[part]

    def to(self, device: torch.device) -> ArraySource:
        return ArraySource(self.fields.to(device))


class MappedSource:
    """Another source's fields after a function; computed anew on each pass, nothing stored."""

    def __init__(self, source: FieldSource, function: Callable[[Tensor], Tensor]) -> None:
        self.source = source
        self.function = function

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.source.shape

    def chunks(self) -> Iterator[Tensor]:
        for chunk in self.source.chunks():
            yield self.function(chunk)

    def to(self, device: torch.device) -> MappedSource:
        return MappedSource(self.source.to(device), self.function)


class SentSource:
    """Another source's fields, delivered on a device: sent there anew on each pass, a few ahead."""

    def __init__(self, source: FieldSource, device: torch.device) -> None:
        self.source = source
        self.device = device

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.source.shape

    def chunks(self) -> Iterator[Tensor]:
        workers = 4 if self.device.type == "cuda" else 0
        yield from ahead(self._send, self.source.chunks(), workers=workers)

    def _send(self, chunk: Tensor) -> Tensor:
        if self.device.type == "cuda" and not chunk.is_cuda:
            chunk = chunk.pin_memory()  # a copy that the device can fetch at full speed
        return chunk.to(self.device, non_blocking=True)

    def to(self, device: torch.device) -> SentSource:
        return SentSource(self.source, device)


def map_fields(source: FieldSource, function: Callable[[Tensor], Tensor]) -> FieldSource:
    """Return `function` of every field: in memory where `source` is, otherwise on the fly."""
    mapped = MappedSource(source, function)
    if isinstance(source, ArraySource):
        return ArraySource(gather(mapped))
    return mapped


def gather(source: FieldSource) -> Tensor:
    """Return all fields of a source as one tensor."""
    if isinstance(source, ArraySource):
        return source.fields
    fields = torch.empty(0, *source.shape[1:])
    filled = 0
    for chunk in source.chunks():
        if not filled:
            fields = chunk.new_empty(source.shape)
        fields[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
    return fields


def as_source(fields: Tensor | FieldSource) -> FieldSource:
    """Return a source for a tensor of fields; a source is returned as it is."""
    return ArraySource(fields) if isinstance(fields, Tensor) else fields
