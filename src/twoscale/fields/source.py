"""Fields as a sequence of chunks, so that every fit is a number of passes over samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.symmetries import Group
from twoscale.fields.workers import IN_TURN, Tensors, Work, Workers, on_device
from twoscale.runtime.threads import prefetch

_CHUNK_VALUES = 2**22  # 16 MiB of float32: what a CPU's allocator reuses without new pages
_CHUNK_VALUES_CUDA = 2**24
_RANGE_VALUES = 2**23  # of the samples that one worker takes at a time
_RANGE_SAMPLES = 64  # at least: adding up the sums of fewer would take longer than making them

Shape = tuple[int, ...]
"""(samples, channels, *shape of the domain)"""
SampleShape = tuple[int, ...]
"""(channels, *shape of the domain)"""
Window = tuple[slice, ...]
"""Consecutive nodes along each axis of a grid."""


@dataclass(frozen=True)
class Batch:
    """Fields and parameters of the same samples: what sources yield and operators read."""

    fields: Tensor  # (b, C, *shape); no channels if there are parameters alone
    parameters: Tensor  # (b, P)

    @classmethod
    def of(cls, fields: Tensor, parameters: Tensor | None = None) -> Batch:
        """Return a batch, which may lack parameters."""
        if parameters is None:
            parameters = fields.new_zeros(fields.shape[0], 0)
        return cls(fields, parameters)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, samples: Any) -> Batch:
        return Batch(self.fields[samples], self.parameters[samples])

    def to(self, device: torch.device | str) -> Batch:
        return Batch(self.fields.to(device), self.parameters.to(device))

    def map(self, function: Callable[[Tensor], Tensor]) -> Batch:
        """Return the same parameters with `function` of the fields."""
        return Batch(function(self.fields), self.parameters)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the fields and, if there are any, the parameters: the arguments of operators."""
        return (self.fields, self.parameters) if self.parameters.shape[1] else (self.fields,)


class FieldSource(Protocol):
    """Fields that can be passed over any number of times, in a fixed order."""

    @property
    def shape(self) -> Shape:
        """Return (samples, channels, *shape)."""
        ...

    @property
    def workers(self) -> Workers:
        """Return who does work on all ranges."""
        ...

    def ranges(self) -> list[slice]:
        """Return consecutive ranges of samples, which depend on the shape only."""
        ...

    def read(self, samples: slice) -> Iterator[Tensor]:
        """Yield consecutive batches (batch, channels, *shape) of one of the ranges."""
        ...

    def chunks(self) -> Iterator[Tensor]:
        """Yield consecutive batches of all samples."""
        ...

    def to(self, device: torch.device) -> FieldSource:
        """Return the same fields, delivered on `device`."""
        ...


def total(work: Work, source: FieldSource) -> Tensors:
    """Return the sums over a source of what `work` returns for each of its ranges."""
    return source.workers.total(work, source)


def is_source(fields: Any) -> bool:
    """Say whether fields come as a source; arrays of other libraries have chunks as a property."""
    return callable(getattr(type(fields), "chunks", None))


def chunk_length(*sides: int, cuda: bool = False) -> int:
    """Return how many samples with these sides (channels, *shape) make one chunk."""
    return max(1, (_CHUNK_VALUES_CUDA if cuda else _CHUNK_VALUES) // max(prod(sides), 1))


def range_length(*sides: int) -> int:
    """Return how many samples with these sides make one range: whole chunks."""
    chunk = chunk_length(*sides)
    return max(1, max(_RANGE_VALUES // max(prod(sides), 1), _RANGE_SAMPLES) // chunk) * chunk


def slices(samples: int, length: int) -> list[slice]:
    """Return consecutive slices of at most `length` that cover `samples`."""
    return [slice(at, min(at + length, samples)) for at in range(0, samples, length)]


class ArraySource:
    """Fields held in one tensor (samples, channels, *shape)."""

    def __init__(self, fields: Tensor) -> None:
        self.fields = fields
        self.shape: Shape = tuple(fields.shape)
        self.workers = on_device(fields.is_cuda)

    def ranges(self) -> list[slice]:
        samples, *sides = self.shape
        return slices(samples, range_length(*sides))

    def read(self, samples: slice) -> Iterator[Tensor]:
        return _chunks_of(self.fields[samples])

    def chunks(self) -> Iterator[Tensor]:
        return _chunks_of(self.fields)

    def to(self, device: torch.device) -> ArraySource:
        return ArraySource(self.fields.to(device))


def _chunks_of(fields: Tensor) -> Iterator[Tensor]:
    length = chunk_length(*fields.shape[1:], cuda=fields.is_cuda)
    return iter(fields.split(length) if len(fields) else ())


class ChangedSource(ABC):
    """Another source, whose chunks are changed on the way; a subclass says how."""

    source: FieldSource

    @property
    def workers(self) -> Workers:
        return self.source.workers

    def ranges(self) -> list[slice]:
        return self.source.ranges()

    def read(self, samples: slice) -> Iterator[Tensor]:
        return self._changed(self.source.read(samples), samples.start)

    def chunks(self) -> Iterator[Tensor]:
        return self._changed(self.source.chunks(), 0)

    @abstractmethod
    def _changed(self, chunks: Iterator[Tensor], start: int) -> Iterator[Tensor]:
        """Yield what becomes of chunks that begin with sample `start` of the other source."""


class MappedSource(ChangedSource):
    """Another source's fields after a function; computed anew on each pass, nothing stored.

    `shape` is that of one mapped sample, (channels, *shape); by default it stays the same.
    """

    def __init__(
        self,
        source: FieldSource,
        function: Callable[[Tensor], Tensor],
        shape: SampleShape | None = None,
    ) -> None:
        self.source = source
        self.function = function
        self.sample_shape = shape

    @property
    def shape(self) -> Shape:
        samples, *sides = self.source.shape
        return samples, *(self.sample_shape or sides)

    def _changed(self, chunks: Iterator[Tensor], start: int) -> Iterator[Tensor]:
        return map(self.function, chunks)

    def to(self, device: torch.device) -> MappedSource:
        return MappedSource(self.source.to(device), self.function, self.sample_shape)


class BatchSource:
    """A source's fields, with the parameters (samples, P) of the same samples beside them."""

    def __init__(self, fields: FieldSource, parameters: Tensor) -> None:
        self.fields = fields
        self.parameters = parameters

    @property
    def shape(self) -> Shape:
        return self.fields.shape

    @property
    def workers(self) -> Workers:
        return self.fields.workers

    def ranges(self) -> list[slice]:
        return self.fields.ranges()

    def read(self, samples: slice) -> Iterator[Batch]:
        return self._batches(self.fields.read(samples), samples.start)

    def chunks(self) -> Iterator[Batch]:
        return self._batches(self.fields.chunks(), 0)

    def _batches(self, chunks: Iterator[Tensor], start: int) -> Iterator[Batch]:
        for chunk in chunks:
            scalars = self.parameters[start : start + len(chunk)]
            yield Batch(chunk, scalars.to(chunk.device, non_blocking=True))
            start += len(chunk)


class PredictedSource(ChangedSource):
    """What a function makes of the batches of another source; computed anew on each pass.

    `shape` is that of one sample of it, (channels, *shape).
    """

    def __init__(
        self, source: BatchSource, function: Callable[[Batch], Tensor], shape: SampleShape
    ) -> None:
        self.source = source.fields
        self.parameters = source.parameters
        self.function = function
        self.sample_shape = shape

    @property
    def shape(self) -> Shape:
        return self.source.shape[0], *self.sample_shape

    def _changed(self, chunks: Iterator[Tensor], start: int) -> Iterator[Tensor]:
        return map(self.function, BatchSource(self.source, self.parameters)._batches(chunks, start))

    def to(self, device: torch.device) -> PredictedSource:
        batches = BatchSource(self.source.to(device), self.parameters.to(device))
        return PredictedSource(batches, self.function, self.sample_shape)


class ImageSource(ChangedSource):
    """All images of another source's fields under some symmetries; made anew on each pass."""

    def __init__(self, source: FieldSource, group: Group) -> None:
        self.source = source
        self.group = group

    @property
    def shape(self) -> Shape:
        samples, *rest = self.source.shape
        return len(self.group) * samples, *rest

    def _changed(self, chunks: Iterator[Tensor], start: int) -> Iterator[Tensor]:
        for chunk in chunks:
            for symmetry in self.group:
                yield symmetry(chunk)

    def to(self, device: torch.device) -> ImageSource:
        return ImageSource(self.source.to(device), self.group)


class FirstFields(ChangedSource):
    """The first fields of another source."""

    def __init__(self, source: FieldSource, samples: int) -> None:
        self.source = source
        self.samples = min(samples, source.shape[0])

    @property
    def shape(self) -> Shape:
        return self.samples, *self.source.shape[1:]

    def ranges(self) -> list[slice]:
        return [one for one in self.source.ranges() if one.start < self.samples]

    def _changed(self, chunks: Iterator[Tensor], start: int) -> Iterator[Tensor]:
        left = self.samples - start
        for chunk in chunks:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    def to(self, device: torch.device) -> FirstFields:
        return FirstFields(self.source.to(device), self.samples)


class SentSource:
    """Another source's fields, delivered on a device: sent there anew on each pass, a few ahead."""

    def __init__(self, source: FieldSource, device: torch.device) -> None:
        self.source = source
        self.device = device

    @property
    def shape(self) -> Shape:
        return self.source.shape

    @property
    def workers(self) -> Workers:
        return IN_TURN if self.device.type == "cuda" else self.source.workers

    def ranges(self) -> list[slice]:
        return self.source.ranges()

    def read(self, samples: slice) -> Iterator[Tensor]:
        return map(self._send, self.source.read(samples))

    def chunks(self) -> Iterator[Tensor]:
        workers = 4 if self.device.type == "cuda" else 0
        yield from prefetch(self._send, self.source.chunks(), workers=workers)

    def window(self, *window: slice) -> SentSource:
        """Return a part of each field; see `windowed`."""
        return SentSource(windowed(self.source, window), self.device)

    def _send(self, chunk: Tensor) -> Tensor:
        if self.device.type == "cuda" and not chunk.is_cuda:
            chunk = chunk.pin_memory()  # a copy that the device can fetch at full speed
        return chunk.to(self.device, non_blocking=True)

    def to(self, device: torch.device) -> SentSource:
        return SentSource(self.source, device)


def map_fields(
    source: FieldSource, function: Callable[[Tensor], Tensor], shape: SampleShape | None = None
) -> FieldSource:
    """Return `function` of every field: in memory where `source` is, otherwise on the fly.

    `shape` is that of one mapped sample, (channels, *shape), where the function changes it.
    """
    mapped = MappedSource(source, function, shape)
    if in_memory(source):
        return ArraySource(gather(mapped))
    return mapped


def windowed(source: FieldSource, window: Window) -> FieldSource:
    """Return a window of each field, in the ranges and chunks of whole fields.

    A source that is stored reads only what it needs for it; others have a method `window`, or make
    whole fields first.
    """
    _, channels, *sides = source.shape
    shape = (channels, *(len(range(n)[one]) for n, one in zip(sides, window, strict=True)))
    if shape == source.shape[1:]:
        return source
    if hasattr(source, "window"):
        found: FieldSource = source.window(*window)
        return found
    return MappedSource(source, itemgetter((..., *window)), shape)


def gather(source: FieldSource) -> Tensor:
    """Return all fields of a source as one tensor (samples, channels, *shape)."""
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


def random_rows(samples: int, count: int, seed: int = 0) -> Tensor:
    """Return some of the samples' numbers, ascending: `count` by the seed, or all if fewer.

    >>> random_rows(3, 5).tolist()
    [0, 1, 2]
    """
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed))
    return order[:count].sort().values


def fields_at(source: FieldSource, rows: Tensor) -> Tensor:
    """Return the fields of some samples, whose numbers ascend.

    Each chunk is read at most once, and none after the last of these samples.
    """
    found: list[Tensor] = []
    start = 0
    for chunk in source.chunks():
        low, high = torch.searchsorted(rows, torch.tensor([start, start + len(chunk)])).tolist()
        if high - low == len(chunk):
            found.append(chunk)
        elif low < high or not start:  # an empty part of the first one tells the device
            found.append(chunk[(rows[low:high] - start).to(chunk.device)])
        start += len(chunk)
        if high == len(rows):
            break
    return torch.cat(found) if found else torch.empty(0, *source.shape[1:])


def in_memory(source: FieldSource) -> bool:
    """Say whether the fields of a source are held in memory."""
    return isinstance(source, ArraySource)


def as_source(fields: Tensor | FieldSource) -> FieldSource:
    """Return a source for a tensor (samples, channels, *shape), or the source given."""
    return ArraySource(fields) if isinstance(fields, Tensor) else fields


def single_precision(array: np.ndarray) -> Tensor:
    """Return an array as a float32 tensor that may be written to."""
    with np.errstate(over="ignore"):  # what becomes infinite is refused with all that is
        values = np.ascontiguousarray(array, dtype=np.float32)
    return torch.from_numpy(values if values.flags.writeable else values.copy())
