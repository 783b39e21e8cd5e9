"""The shards of one array of a dataset: compressed chunks and an index, read with mistrust.

This is the codec `sharding_indexed` of Zarr v3. It is written and read here rather than by Zarr so
that shards grow chunk by chunk, that no index is read twice, and that nothing is unpacked whose
header claims another size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from twoscale.data.chunking import COMPRESSION, DTYPE, Chunk, Chunking, Window, extent
from twoscale.data.places import Place, file_size, read_json_at, read_range
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.runtime.memory import is_out_of_memory

_BLOSC_HEADER = 16
_ENTRY = 16  # bytes of an index for each chunk: where it begins, and its length
_SUM = 4  # bytes of the index's own checksum
_NOTHING = 2**64 - 1  # for a chunk that the shard does not hold
_POLYNOMIAL = 0x82F63B78  # of CRC-32C, bits reversed
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
                there, here = [], []
                for axis, cut in zip(wanted, chunk.region, strict=True):
                    low, high = max(axis.start, cut.start), min(axis.stop, cut.stop)
                    there.append(slice(low - axis.start, high - axis.start))
                    here.append(slice(low - cut.start, high - cut.start))
                values[tuple(there)] = block[tuple(here)]
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
            for stretch in _stretches(self.chunking, index, chunks):
                begin = stretch[0][1]
                content = memoryview(read_range(file, begin, sum(part[2] for part in stretch)))
                for chunk, start, length in stretch:
                    first, last = chunk.region[0].start, chunk.region[0].stop
                    packed = content[start - begin : start - begin + length]
                    yield chunk, unpack(packed, self.chunking, chunk)
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


def _stretches(
    chunking: Chunking, index: np.ndarray, chunks: list[Chunk]
) -> Iterator[list[tuple[Chunk, int, int]]]:
    """Yield (chunk, start, length) of chunks that follow each other, as many as are read at once.

    Raise a ValueError if one of them is not in the shard.
    """
    stretch: list[tuple[Chunk, int, int]] = []
    size = 0
    for chunk in chunks:
        start, length = index[chunk.row % chunking.rows * chunking.tiles + chunk.tile].tolist()
        if start == _NOTHING:
            raise ValueError("the shard lacks a chunk")
        follows = stretch and start == stretch[-1][1] + stretch[-1][2]
        if stretch and (not follows or size + length > _AT_ONCE):
            yield stretch
            stretch, size = [], 0
        stretch.append((chunk, start, length))
        size += length
    yield stretch


def index_bytes(chunking: Chunking) -> int:
    """Return the size of a shard's index."""
    return _ENTRY * chunking.rows * chunking.tiles + _SUM


def write_index(chunking: Chunking, lengths: Sequence[int]) -> bytes:
    """Return the index of a shard whose first chunks have these lengths and follow each other."""
    table = np.full((chunking.rows * chunking.tiles, 2), _NOTHING, dtype="<u8")
    table[: len(lengths), 1] = lengths
    table[: len(lengths), 0] = np.cumsum([0, *lengths[:-1]])
    content = table.tobytes()
    return content + _crc32c(content).to_bytes(_SUM, "little")


def read_index(chunking: Chunking, content: bytes, room: int) -> np.ndarray:
    """Return where each chunk of a shard begins and how long it is, (chunks, 2).

    Raise a ValueError if the index is damaged, or names bytes beyond the `room` before it.
    """
    if len(content) != index_bytes(chunking):
        raise ValueError("the shard is cut short")
    if _crc32c(content[:-_SUM]).to_bytes(_SUM, "little") != content[-_SUM:]:
        raise ValueError("the index does not match its checksum")
    table = np.frombuffer(content[:-_SUM], dtype="<u8").reshape(-1, 2)
    present = table[table[:, 0] != _NOTHING]
    # Each on its own first: the sum of two such numbers may be too large for their type.
    if (present > room).any() or (present.sum(axis=1) > room).any():
        raise ValueError("the index names bytes that the shard does not have")
    return table


def pack(values: np.ndarray, chunk: tuple[int, ...]) -> bytes:
    """Return the compressed bytes of a chunk; a smaller one is filled up with zeros."""
    if values.shape != chunk:
        whole = np.zeros(chunk, DTYPE)
        whole[tuple(slice(side) for side in values.shape)] = values
        values = whole
    return bytes(_blosc().encode(np.ascontiguousarray(values)))


def unpack(content: bytes | memoryview, chunking: Chunking, chunk: Chunk) -> np.ndarray:
    """Return the values of a chunk, without what fills it up.

    Raise a ValueError if its header claims any other size than a chunk has.
    """
    values = np.empty(chunking.chunk, DTYPE)
    sizes = (int.from_bytes(content[place : place + 4], "little") for place in (4, 12))
    if len(content) < _BLOSC_HEADER or tuple(sizes) != (values.nbytes, len(content)):
        raise ValueError("it has other sizes than those of a chunk")
    _blosc().decode(content, out=values)
    return values[tuple(slice(side) for side in extent(chunk.region))]


def checksum(values: np.ndarray) -> str:
    """Return the digest of an array's bytes."""
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16).hexdigest()


@cache
def _blosc() -> Any:
    """Return the compressor, which datasets on disk need, and datasets in memory do not."""
    try:
        from numcodecs import Blosc
    except ImportError as error:
        raise missing_extra("numcodecs", "data") from error
    options = {name: COMPRESSION[name] for name in ("cname", "clevel", "blocksize")}
    return Blosc(shuffle=Blosc.SHUFFLE, **options)


@cache
def _crc_table() -> list[int]:
    table: Iterable[int] = range(256)
    for _ in range(8):
        table = [(value >> 1) ^ (_POLYNOMIAL if value & 1 else 0) for value in table]
    return list(table)


def _crc32c(content: bytes) -> int:
    """Return the CRC-32C of some bytes; an index has a few kilobytes.

    >>> hex(_crc32c(b"123456789"))
    '0xe3069283'
    """
    table, state = _crc_table(), 0xFFFFFFFF
    for byte in content:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ 0xFFFFFFFF
