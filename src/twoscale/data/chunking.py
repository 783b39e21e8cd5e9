"""How an array of a dataset is cut: into shards, which are files, and these into chunks.

A shard holds whole samples. A chunk holds some samples, or a tile of one sample that is larger than
a chunk: a part of its rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from twoscale.errors import TwoscaleError

DTYPE = "float32"
_BYTES = 4
COMPRESSION = {"cname": "lz4", "clevel": 3, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}

Region = tuple[slice, ...]
"""A part of an array: a slice of each axis, with a start and a stop."""


class Window(NamedTuple):
    """A part of the grid: its rows and its columns, each with a start and a stop."""

    rows: slice
    columns: slice


class Chunk(NamedTuple):
    """One chunk of an array.

    `row` counts along the samples and `tile` within a sample; `region` is its part of the array.
    """

    row: int
    tile: int
    region: Region


@dataclass(frozen=True)
class Chunking:
    """How an array of some shape is cut.

    `chunk` is the shape of every chunk: those at the end of an axis are filled up with zeros.
    `rows` is the number of chunks along the samples that share a shard.
    """

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    rows: int

    @classmethod
    def of(
        cls, samples: int, sample: tuple[int, ...], *, chunk: int, shard: int, most: int
    ) -> Chunking:
        """Return how samples of a shape are cut.

        `chunk` and `shard` are numbers of samples; a chunk has at most `most` bytes, if a tile of
        one node does.
        """
        length = min(chunk, samples)
        rows = min(shard // chunk, -(-samples // length))
        tile = sample if chunk > 1 else _tile(sample, most)
        return cls((samples, *sample), (length, *tile), rows)

    @property
    def grid(self) -> tuple[int, ...]:
        """Return the number of chunks along each axis."""
        return tuple(-(-side // part) for side, part in zip(self.shape, self.chunk, strict=True))

    @property
    def tiles(self) -> int:
        """Return how many chunks one sample is spread over."""
        return prod(self.grid[1:])

    @property
    def count(self) -> int:
        """Return the number of chunks."""
        return prod(self.grid)

    @property
    def shards(self) -> int:
        return -(-self.grid[0] // self.rows)

    @property
    def shard_shape(self) -> tuple[int, ...]:
        """Return the shape of a shard, which a multiple of a chunk's."""
        inner = zip(self.grid[1:], self.chunk[1:], strict=True)
        return (self.rows * self.chunk[0], *(count * side for count, side in inner))

    @property
    def chunk_bytes(self) -> int:
        return _BYTES * prod(self.chunk)

    def key(self, shard: int) -> str:
        """Return the name of a shard's file in the array's folder."""
        return "/".join(["c", str(shard), *("0" for _ in self.shape[1:])])

    def samples_of(self, row: int) -> tuple[int, int]:
        """Return the first sample of a row of chunks, and that after its last one."""
        start = row * self.chunk[0]
        return start, min(start + self.chunk[0], self.shape[0])

    def rows_of(self, shard: int) -> range:
        """Return the rows of chunks of a shard."""
        return range(shard * self.rows, min((shard + 1) * self.rows, self.grid[0]))

    def chunks(self, row: int, region: Region | None = None) -> Iterator[Chunk]:
        """Yield the chunks of a row in the order of their tiles, or those that a region meets."""
        start, stop = self.samples_of(row)
        axes = list(zip(self.shape[1:], self.chunk[1:], strict=True))
        wanted = [range(-(-side // part)) for side, part in axes]
        if region is not None:
            wanted = [
                range(cut.start // part, -(-cut.stop // part))
                for cut, (_, part) in zip(region[1:], axes, strict=True)
            ]
        for places in product(*wanted):
            tile = 0
            for place, count in zip(places, self.grid[1:], strict=True):
                tile = tile * count + place
            inner = (
                slice(place * part, min((place + 1) * part, side))
                for place, (side, part) in zip(places, axes, strict=True)
            )
            yield Chunk(row, tile, (slice(start, stop), *inner))

    def region(self, start: int, stop: int, window: Window | None) -> Region:
        """Return the part of the array that some samples have within a window of the grid."""
        whole = [slice(0, side) for side in self.shape[1:]]
        if window is not None:
            whole[-1] = window.columns
            if len(whole) > 1:
                whole[-2] = window.rows
        return (slice(start, stop), *whole)

    def description(self) -> dict[str, Any]:
        """Return what Zarr's `zarr.json` says of the array."""
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": DTYPE,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": list(self.shard_shape)},
            },
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0.0,
            "codecs": _codecs(self.chunk),
            "attributes": {},
            "storage_transformers": [],
        }


def is_our_array(described: dict[str, Any]) -> bool:
    """Say whether a `zarr.json` is that of an array of a dataset.

    Nobody else compresses in just this way: the codecs of Zarr and their settings tell.
    """
    try:
        return bool(
            described["codecs"] == _codecs(described["codecs"][0]["configuration"]["chunk_shape"])
        )
    except (KeyError, IndexError, TypeError):
        return False


def _codecs(chunk: Sequence[int]) -> list[dict[str, Any]]:
    """Return what Zarr's `zarr.json` says of how chunks of this shape become a shard."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "chunk_shape": list(chunk),
        "codecs": [little, {"name": "blosc", "configuration": COMPRESSION}],
        "index_codecs": [little, {"name": "crc32c"}],
        "index_location": "end",
    }
    return [{"name": "sharding_indexed", "configuration": sharding}]


def within(region: Region, outer: Region) -> Region:
    """Return where a region lies in an array that holds only the region `outer`."""
    return tuple(
        slice(one.start - other.start, one.stop - other.start)
        for one, other in zip(region, outer, strict=True)
    )


def overlap(one: Region, other: Region) -> Region:
    """Return the part that two regions share, which must not be empty."""
    return tuple(
        slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(one, other, strict=True)
    )


def extent(region: Region) -> tuple[int, ...]:
    """Return the shape of a region."""
    return tuple(part.stop - part.start for part in region)


def checked_window(window: tuple[slice, slice], grid: tuple[int, int]) -> Window:
    """Return a window of a grid with its bounds, or raise if it is none.

    >>> checked_window((slice(2), slice(-3, None)), (4, 8))
    Window(rows=slice(0, 2, None), columns=slice(5, 8, None))
    """
    found = []
    for name, part, side in zip(("rows", "columns"), window, grid, strict=True):
        start, stop, step = part.indices(side)
        if step != 1 or start >= stop:
            raise TwoscaleError(
                f"a window has consecutive {name} from 0 to {side - 1}, at least one, got {part}"
            )
        found.append(slice(start, stop))
    return Window(*found)


def cut_window(values: np.ndarray, window: Window | None) -> np.ndarray:
    """Return a window of fields whose last axes are rows and columns, or columns alone."""
    if window is None:
        return values
    if values.ndim == 2:
        return values[:, window.columns]
    return values[..., window.rows, window.columns]


def _tile(sample: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Return the shape of the tiles that a sample is cut into: rows and columns are halved."""
    *outer, height, width = (1, *sample)
    parts = [1, 1]
    sides = [height, width] if len(sample) > 1 else [1, width]
    tile = list(sides)
    while _BYTES * prod(outer) * prod(tile) > most and max(tile) > 1:
        axis = 0 if tile[0] >= tile[1] else 1
        parts[axis] *= 2
        tile[axis] = -(-sides[axis] // parts[axis])
    return (*sample[:-2], *tile) if len(sample) > 1 else (tile[1],)
