"""What is read from a source, held in memory for the next passes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from threading import Lock
from uuid import uuid4

import torch
from torch import Tensor

from twoscale.fields.source import ChangedSource, FieldSource, Shape
from twoscale.fields.workers import HERE, IN_TURN

_KEPT_BYTES = 2**28  # of one source, in each of the processes that work on it


def held(source: FieldSource, *, axis: int = 0) -> FieldSource:
    """Return the same fields: in memory here, or in that of other processes that read them.

    Chunks have the samples along an `axis`. On a GPU all of them are one chunk: few large products
    are faster than many small ones.
    """
    return HeldRanges(source, axis) if source.workers in HERE else KeptRanges(source)


class HeldRanges:
    """What another source yields, range by range, in the memory of this process."""

    def __init__(self, source: FieldSource, axis: int = 0) -> None:
        self.shape = source.shape
        self.workers = source.workers
        self._ranges = source.ranges()
        if self.workers is IN_TURN:
            self._ranges = [slice(0, self.shape[0])]
            self._held = [[_joined(source, axis)]]
        else:
            self._held = list(self.workers.map(list, source))

    def ranges(self) -> list[slice]:
        return self._ranges

    def read(self, samples: slice) -> Iterator[Tensor]:
        return iter(self._held[self._ranges.index(samples)])

    def chunks(self) -> Iterator[Tensor]:
        return itertools.chain.from_iterable(self._held)

    def to(self, device: torch.device) -> HeldRanges:
        return self  # what is held stays where it is


def _joined(source: FieldSource, axis: int) -> Tensor:
    """Return all chunks of a source as one; only one chunk is held twice meanwhile."""
    chunks, samples = source.chunks(), source.shape[0]
    first = next(chunks)
    whole = first.new_empty(*first.shape[:axis], samples, *first.shape[axis + 1 :])
    filled = 0
    for chunk in itertools.chain([first], chunks):
        whole.narrow(axis, filled, chunk.shape[axis]).copy_(chunk)
        filled += chunk.shape[axis]
    return whole


class KeptRanges(ChangedSource):
    """Another source, whose ranges stay in the memory of the process that first read them.

    They stay until another source is kept there. Ranges that are read after the room is full are
    not kept.
    """

    def __init__(self, source: FieldSource) -> None:
        self.source = source
        self.token = uuid4().hex

    @property
    def shape(self) -> Shape:
        return self.source.shape

    def read(self, samples: slice) -> Iterator[Tensor]:
        return _STORE.read(self.token, self.source, samples)

    def _changed(self, chunks: Iterator[Tensor], start: int) -> Iterator[Tensor]:
        return chunks

    def to(self, device: torch.device) -> KeptRanges:
        return self


class _Store:
    """The ranges that this process keeps, of one source at a time."""

    def __init__(self) -> None:
        self.token = ""
        self.ranges: dict[int, list[Tensor]] = {}
        self.left = _KEPT_BYTES
        self.lock = Lock()

    def read(self, token: str, source: FieldSource, samples: slice) -> Iterator[Tensor]:
        with self.lock:
            if token != self.token:
                self.token, self.ranges, self.left = token, {}, _KEPT_BYTES
            ranges, full = self.ranges, self.left <= 0  # of this token, whatever comes meanwhile
        if samples.start in ranges:
            yield from ranges[samples.start]
        elif full:
            yield from source.read(samples)
        else:
            ranges[samples.start] = read = list(source.read(samples))
            with self.lock:
                if ranges is self.ranges:
                    self.left -= sum(chunk.nbytes for chunk in read)
            yield from read


_STORE = _Store()
