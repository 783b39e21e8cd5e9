"""One array of a dataset where it is stored: opened and read with mistrust."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from twoscale.data.chunking import DTYPE, Chunk, Chunking, Window, extent, overlap, within
from twoscale.data.places import Place, file_size, read_json_at, read_range
from twoscale.data.shards import checksum, index_bytes, locate, read_index, unpack
from twoscale.errors import TwoscaleError
from twoscale.runtime.memory import is_out_of_memory

_AT_ONCE = 2**24  # bytes of a shard that one request reads, at most, if chunks are smaller


class Damaged(Exception):
    """Chunks that cannot be read as they were written; the samples are from `start` to `stop`."""

    def __init__(self, start: int, stop: int) -> None:
        super().__init__(start, stop)
        self.start, self.stop = start, stop


class StoredChunks:
    """An array (samples, ...) of single precision, with a checksum of each chunk.

    Where chunks begin in a shard is read once and kept.
    """

    dtype = DTYPE

    def __init__(self, folder: Place, chunking: Chunking, sums: Sequence[str]) -> None:
        self.folder = folder
        self.chunking = chunking
        self.sums = sums
        self._indices: dict[int, np.ndarray] = {}
        if read_json_at(folder / "zarr.json") != chunking.description():
            raise TwoscaleError(f"{folder} does not match the dataset's description")

    def read(
        self, start: int, stop: int, *, window: Window | None = None, verify: bool = True
    ) -> np.ndarray:
        """Return consecutive samples, or a window of each; raise `Damaged` where that is not whole.

        Every chunk that holds some of it is read and, to `verify` it, held to its checksum.
        """
        wanted = self.chunking.region(start, stop, window)
        values = np.empty(extent(wanted), DTYPE)
        rows = range(start // self.chunking.chunk[0], -(-stop // self.chunking.chunk[0]))
        for shard, some in groupby(rows, lambda row: row // self.chunking.rows):
            chunks = [chunk for row in some for chunk in self.chunking.chunks(row, wanted)]
            for chunk, block in self._blocks(shard, chunks):
                if verify and not self.intact(chunk, block):
                    raise Damaged(chunk.region[0].start, chunk.region[0].stop)
                part = overlap(chunk.region, wanted)
                values[within(part, wanted)] = block[within(part, chunk.region)]
        return values

    def intact(self, chunk: Chunk, values: np.ndarray) -> bool:
        """Say whether a chunk's values, without what fills it up, are as they were written."""
        return checksum(values) == self.sums[chunk.row * self.chunking.tiles + chunk.tile]

    def _blocks(self, shard: int, chunks: list[Chunk]) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield chunks of one shard with their values; stretches of bytes are read at once."""
        file = self.folder / self.chunking.key(shard)
        first, last = chunks[0].region[0].start, chunks[-1].region[0].stop
        try:
            index = self._index(shard, file)
            placed = [
                (chunk, *locate(self.chunking, index, chunk.row, chunk.tile)) for chunk in chunks
            ]
            for stretch in _stretches(placed):
                begin = stretch[0][1]
                content = memoryview(read_range(file, begin, sum(one[2] for one in stretch)))
                for chunk, start, length in stretch:
                    first, last = chunk.region[0].start, chunk.region[0].stop
                    block = unpack(
                        content[start - begin : start - begin + length], self.chunking.chunk
                    )
                    yield chunk, block[tuple(slice(side) for side in extent(chunk.region))]
        except (TwoscaleError, Damaged):
            raise
        except Exception as error:  # codecs raise many kinds of errors on damaged bytes
            if is_out_of_memory(error):
                raise
            raise Damaged(first, last) from error

    def _index(self, shard: int, file: Place) -> np.ndarray:
        """Return where each chunk of a shard is."""
        if shard not in self._indices:
            length = index_bytes(self.chunking)
            room = file_size(file) - length
            if room < 0:
                raise ValueError(f"{file} is shorter than its index")
            self._indices[shard] = read_index(self.chunking, read_range(file, room, length), room)
        return self._indices[shard]


def _stretches(placed: list[tuple[Chunk, int, int]]) -> Iterator[list[tuple[Chunk, int, int]]]:
    """Yield chunks that follow each other in a shard together, as many as are read at once."""
    stretch: list[tuple[Chunk, int, int]] = []
    held = 0
    for one in placed:
        _, start, length = one
        follows = stretch and start == stretch[-1][1] + stretch[-1][2]
        if stretch and (not follows or held + length > _AT_ONCE):
            yield stretch
            stretch, held = [], 0
        stretch.append(one)
        held += length
    if stretch:
        yield stretch
