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


Slices = tuple[slice, slice] | None
"""The rows and columns that are asked for; None for all."""


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
    def shards(self) -> int:
        return -(-self.grid[0] // self.rows)

    def key(self, shard: int) -> str:
        """Return the name of a shard's file in the array's folder."""
        return "/".join(["c", str(shard), *("0" for _ in self.shape[1:])])

    def rows_of(self, shard: int) -> range:
        """Return the rows of chunks of a shard."""
        return range(shard * self.rows, min((shard + 1) * self.rows, self.grid[0]))

    def shard_rows(self, row: int) -> range:
        """Return the rows of chunks that share a shard with this one."""
        return self.rows_of(row // self.rows)

    def chunks(self, row: int, region: Region | None = None) -> Iterator[Chunk]:
        """Yield the chunks of a row in the order of their tiles, or those that a region meets."""
        start = row * self.chunk[0]
        samples = slice(start, min(start + self.chunk[0], self.shape[0]))
        axes = list(zip(self.shape[1:], self.chunk[1:], strict=True))
        inner = [slice(0, side) for side in self.shape[1:]] if region is None else region[1:]
        wanted = [
            range(cut.start // part, -(-cut.stop // part))
            for cut, (_, part) in zip(inner, axes, strict=True)
        ]
        for places in product(*wanted):
            tile = int(np.ravel_multi_index(places, self.grid[1:])) if places else 0
            cuts = (
                slice(place * part, min((place + 1) * part, side))
                for place, (side, part) in zip(places, axes, strict=True)
            )
            yield Chunk(row, tile, (samples, *cuts))

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
        inner = zip(self.grid[1:], self.chunk[1:], strict=True)
        shard = [self.rows * self.chunk[0], *(count * side for count, side in inner)]
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": DTYPE,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
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
        codecs = described["codecs"]
        return bool(codecs == _codecs(codecs[0]["configuration"]["chunk_shape"]))
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


def moved(region: Sequence[slice], origin: Sequence[int]) -> Region:
    """Return a region shifted by the coordinates of an origin."""
    pairs = zip(region, origin, strict=True)
    return tuple(slice(part.start + by, part.stop + by) for part, by in pairs)


def extent(region: Region) -> tuple[int, ...]:
    """Return the shape of a region."""
    return tuple(part.stop - part.start for part in region)


def checked_window(window: tuple[slice, slice], grid: tuple[int, int]) -> Window:
    """Return a window of a grid with its bounds, or raise if it is none.

    >>> checked_window((slice(2), slice(-3, None)), (4, 8))
    Window(rows=slice(0, 2, None), columns=slice(5, 8, None))
    """
    bounds = []
    for name, part, side in zip(("rows", "columns"), window, grid, strict=True):
        start, stop, step = part.indices(side)
        if step != 1 or start >= stop:
            raise TwoscaleError(
                f"a window has consecutive {name} from 0 to {side - 1}, at least one, got {part}"
            )
        bounds.append(slice(start, stop))
    return Window(*bounds)


def _tile(sample: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Return the shape of the tiles that a sample is cut into: rows and columns are halved."""
    inner = min(2, len(sample))
    outer, sides = sample[: len(sample) - inner], sample[len(sample) - inner :]
    parts, tile = [1] * inner, list(sides)
    while _BYTES * prod(outer) * prod(tile) > most and max(tile) > 1:
        axis = tile.index(max(tile))  # rows first, of two that are equal
        parts[axis] *= 2
        tile[axis] = -(-sides[axis] // parts[axis])
    return (*outer, *tile)
