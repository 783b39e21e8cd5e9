"""The bytes of a shard: compressed chunks, one after the other, and an index of where each one is.

This is the codec `sharding_indexed` of Zarr v3. It is written and read here rather than by Zarr so
that shards grow chunk by chunk, and so that nothing is unpacked whose header claims another size.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from twoscale.data.chunking import COMPRESSION, DTYPE, Chunking
from twoscale.errors import missing_extra

_BLOSC_HEADER = 16
_ENTRY = 16  # bytes of an index for each chunk: where it begins, and its length
_SUM = 4  # bytes of the index's own checksum
_NOTHING = 2**64 - 1  # for a chunk that the shard does not hold
_POLYNOMIAL = 0x82F63B78  # of CRC-32C, bits reversed


def index_bytes(chunking: Chunking) -> int:
    """Return the size of a shard's index."""
    return _ENTRY * chunking.rows * chunking.tiles + _SUM


def write_index(chunking: Chunking, lengths: list[int]) -> bytes:
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
    held = table[table[:, 0] != _NOTHING]
    # Each on its own first: the sum of two such numbers may be too large for their type.
    if (held > room).any() or (held.sum(axis=1) > room).any():
        raise ValueError("the index names bytes that the shard does not have")
    return table


def locate(chunking: Chunking, index: np.ndarray, row: int, tile: int) -> tuple[int, int]:
    """Return where a chunk begins in its shard and its length, or raise if it is not there."""
    start, length = index[(row % chunking.rows) * chunking.tiles + tile].tolist()
    if start == _NOTHING:
        raise ValueError("the shard lacks a chunk")
    return start, length


def pack(values: np.ndarray, chunk: tuple[int, ...]) -> bytes:
    """Return the compressed bytes of a chunk; a smaller one is filled up with zeros."""
    if values.shape != chunk:
        whole = np.zeros(chunk, DTYPE)
        whole[tuple(slice(side) for side in values.shape)] = values
        values = whole
    return bytes(_blosc().encode(np.ascontiguousarray(values)))


def unpack(content: bytes | memoryview, chunk: tuple[int, ...]) -> np.ndarray:
    """Return a chunk; raise a ValueError if its header claims any other size than a chunk has."""
    values = np.empty(chunk, DTYPE)
    sizes = (int.from_bytes(content[place : place + 4], "little") for place in (4, 12))
    if len(content) < _BLOSC_HEADER or tuple(sizes) != (values.nbytes, len(content)):
        raise ValueError("it has other sizes than those of a chunk")
    _blosc().decode(content, out=values)
    return values


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
    return Blosc(
        cname=COMPRESSION["cname"],
        clevel=COMPRESSION["clevel"],
        shuffle=Blosc.SHUFFLE,
        blocksize=COMPRESSION["blocksize"],
    )


@cache
def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


def _crc32c(content: bytes) -> int:
    """Return the CRC-32C of some bytes; an index has a few kilobytes.

    >>> hex(_crc32c(b"123456789"))
    '0xe3069283'
    """
    table, state = _crc_table(), 0xFFFFFFFF
    for byte in content:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ 0xFFFFFFFF
