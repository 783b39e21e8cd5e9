"""What is written of a dataset so far: the checksum and length of every chunk, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from twoscale.data.chunking import Chunking
from twoscale.errors import TwoscaleError
from twoscale.files.reading import is_a


class Packed(NamedTuple):
    """A compressed chunk, and the checksum of its values."""

    checksum: str
    content: bytes


PackedRow = dict[str, list[Packed]]
"""The compressed chunks of all arrays that hold the same samples, by the array's name."""


class Entry(NamedTuple):
    """What is known of a chunk that is written."""

    checksum: str
    length: int


Row = dict[str, list[Entry]]
"""The chunks of all arrays that hold the same samples, by the array's name."""

Chunkings = Mapping[str, Chunking]


class Target(Protocol):
    """Where a dataset is written."""

    place: Any

    def begin(
        self, attributes: dict[str, Any], chunkings: Chunkings, request: dict[str, Any]
    ) -> dict[int, Row]:
        """Prepare the arrays; return the rows that an interrupted writer of the same has left."""
        ...

    def add(self, row: int, packed: PackedRow) -> None:
        """Write a row of chunks: the first of a shard, or that after the last one."""
        ...

    def finish(self, attributes: dict[str, Any]) -> None:
        """Let the dataset appear with these attributes."""
        ...


def entries(packed: PackedRow) -> Row:
    """Return what is known of a row once it is written."""
    return {
        name: [Entry(one.checksum, len(one.content)) for one in chunks]
        for name, chunks in packed.items()
    }


def to_line(row: int, entry: Row) -> str:
    """Return a row as a line of a log."""
    return json.dumps({"row": row, "chunks": entry}) + "\n"


def from_lines(text: str, chunkings: Chunkings) -> dict[int, Row]:
    """Return the rows of a log, up to the first line that is none: an interruption cut it short."""
    found: dict[int, Row] = {}
    for line in text.splitlines():
        try:
            row, entry = _parsed(json.loads(line), chunkings)
        except (ValueError, KeyError, TypeError, RecursionError):
            break
        found[row] = entry
    return found


def _parsed(line: Any, chunkings: Chunkings) -> tuple[int, Row]:
    row, chunks = line["row"], line["chunks"]
    entry = {name: [Entry(*one) for one in chunks[name]] for name in chunkings}
    sound = is_a(row, int) and all(
        row in range(chunking.grid[0]) and len(entry[name]) == chunking.tiles
        for name, chunking in chunkings.items()
    )
    every = [one for some in entry.values() for one in some]
    if not (sound and all(is_a(length, int) and length > 0 for _, length in every)):
        raise ValueError("a row has a number, and a checksum and a length of each chunk")
    return row, entry


def kept_rows(rows: Iterable[int], logged: Mapping[int, Row]) -> list[int]:
    """Return the rows of a shard that were logged without a gap, from its first one on."""
    kept: list[int] = []
    for row in rows:
        if row not in logged:
            break
        kept.append(row)
    return kept


def shard_lengths(rows: Iterable[int], logged: Mapping[int, Row], name: str) -> list[int]:
    """Return the lengths of an array's chunks in some rows, in the order of a shard."""
    return [one.length for row in rows for one in logged[row][name]]


def refuse_existing(place: Any) -> TwoscaleError:
    """Return the error for a place that is taken."""
    return TwoscaleError(f"{place} exists already: choose another path, or set overwrite")
