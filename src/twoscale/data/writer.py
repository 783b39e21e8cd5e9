"""Writing a dataset: chunk by chunk, so that an interrupted command can go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from twoscale.data.chunking import DTYPE
from twoscale.data.description import FORMAT, FORMAT_VERSION, description_digest, layout_of
from twoscale.data.places import URL, Place, place_of
from twoscale.data.remote_target import RemoteTarget, remote_target
from twoscale.data.shards import checksum, pack, write_index
from twoscale.data.store import Dataset
from twoscale.data.targets import (
    Chunkings,
    LocalTarget,
    Packed,
    PackedRow,
    local_target,
    log_line,
    shard_lengths,
)
from twoscale.files import plain_json
from twoscale.runtime.threads import file_workers, prefetch
from twoscale.surrogate.artifact import environment


@contextmanager
def writing(
    path: str | Place,
    description: dict[str, Any],
    *,
    overwrite: bool,
    resumable: bool = False,
    device: str = "cpu",
) -> Iterator[DatasetWriter]:
    """Give a writer for the dataset at `path`, which appears there when the writer finishes.

    A `resumable` one that is interrupted, and is opened again with the same description on the same
    `device`, goes on after the last chunk that was safely written; on a storage service after the
    last shard.
    """
    place = place_of(path)
    how = {"overwrite": overwrite, "resumable": resumable}
    with (
        remote_target(place, **how)
        if isinstance(place, URL)
        else local_target(place, **how) as target
    ):
        yield DatasetWriter(target, description, device=device)


@dataclass(frozen=True)
class ChunkPacker:
    """Compresses the chunks of a dataset, here or in another process."""

    samples: int
    chunk: int
    chunkings: Chunkings

    def rows(self, start: int, stop: int) -> range:
        """Return the rows of chunks of some samples."""
        length = min(self.chunk, self.samples)
        return range(start // length, -(-stop // length))

    def __call__(self, row: int, start: int, arrays: dict[str, np.ndarray]) -> PackedRow:
        """Return the compressed chunks of a row; the arrays begin with sample `start`."""
        return {name: self._packed(name, row, start, arrays[name]) for name in self.chunkings}

    def _packed(self, name: str, row: int, start: int, values: np.ndarray) -> list[Packed]:
        chunking, packed = self.chunkings[name], []
        chunks = list(chunking.chunks(row))
        samples = chunks[0].region[0]
        whole = np.ascontiguousarray(
            values[samples.start - start : samples.stop - start], dtype=DTYPE
        ).reshape(-1, *chunking.shape[1:])
        for chunk in chunks:
            block = whole[(slice(None), *chunk.region[1:])]
            packed.append(Packed(checksum(block), pack(block, chunking.chunk)))
        return packed


class DatasetWriter:
    """Writes a dataset to a target, in ascending order of samples."""

    def __init__(
        self, target: LocalTarget | RemoteTarget, description: dict[str, Any], *, device: str
    ) -> None:
        self.target = target
        layout = layout_of(description)
        layout.refuse_large()
        self.packer = ChunkPacker(layout.samples, layout.chunk, layout.chunkings)
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "complete": False}
        sizes = {"chunk": layout.chunk, "shard": layout.shard}
        self.attributes = plain_json(head | sizes | description)
        request = self.attributes | {"environment": environment(torch.device(device))}
        self.written = target.begin(self.attributes, layout.chunkings, plain_json(request))

    @property
    def chunk(self) -> int:
        """Return the number of samples in a row of chunks."""
        return self.packer.chunk

    def missing(self, start: int, stop: int) -> list[int]:
        """Return the rows of chunks of some samples that still have to be written."""
        return [row for row in self.packer.rows(start, stop) if row not in self.written]

    def write(self, start: int, arrays: dict[str, np.ndarray]) -> None:
        """Write consecutive samples of all arrays; `start` must be a multiple of the chunk.

        Values may have other axes than on disk, as long as they follow in the same order. Chunks
        that are there already are left as they are.
        """
        rows = self.missing(start, start + len(arrays["output"]))
        packed = partial(self.packer, start=start, arrays=arrays)
        for row, one in zip(rows, prefetch(packed, rows, workers=file_workers()), strict=True):
            self.add(row, one)

    def add(self, row: int, packed: PackedRow) -> None:
        """Append a row of chunks to its shards; rows come in ascending order.

        A shard gets its index with its last chunk.
        """
        self.written[row] = {
            name: [(one.checksum, len(one.content)) for one in chunks]
            for name, chunks in packed.items()
        }
        contents = {name: [one.content for one in chunks] for name, chunks in packed.items()}
        for name, chunking in self.packer.chunkings.items():
            rows = chunking.shard_rows(row)
            if row == rows[-1]:
                lengths = shard_lengths(rows, self.written, name)
                contents[name].append(write_index(chunking, lengths))
        self.target.append(row, contents, log_line(row, self.written[row]))

    def finish(self) -> Dataset:
        """Add the checksums to the description and let the dataset appear."""
        ordered = [self.written[row] for row in sorted(self.written)]
        sums = {
            name: [digest for row in ordered for digest, _ in row[name]]
            for name in self.packer.chunkings
        }
        whole = self.attributes | {"complete": True, "checksums": sums}
        whole["digest"] = description_digest(whole)
        self.target.finish(whole)
        return Dataset(self.target.place)
