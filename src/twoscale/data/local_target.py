"""A dataset written into a local folder: shards grow chunk by chunk, and appear all at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twoscale.data.chunking import Chunking, extent
from twoscale.data.parts import is_replaceable
from twoscale.data.places import file_size, read_range
from twoscale.data.shards import checksum, unpack, write_index
from twoscale.data.written import (
    Chunkings,
    PackedRow,
    Row,
    entries,
    from_lines,
    kept_rows,
    shard_lengths,
    to_line,
)
from twoscale.files import claimed, remove, write_json
from twoscale.files.outputs import Output
from twoscale.files.work_folder import reporting_os_errors
from twoscale.runtime.threads import file_workers, prefetch


@contextmanager
def local_target(path: Path, *, overwrite: bool, resumable: bool) -> Iterator[LocalTarget]:
    """Give the target for a dataset in a local folder; nothing is left of a block that fails.

    What a later command can go on with stays beside the place.
    """
    with claimed(path, overwrite=overwrite, may_replace=is_replaceable) as output:
        yield LocalTarget(output, resumable=resumable)


class LocalTarget:
    """Writes a dataset into the content of an output.

    Each row of chunks is appended to its shards and then logged. A shard gets its index with its
    last chunk.
    """

    def __init__(self, output: Output, *, resumable: bool) -> None:
        self.place = output.place
        self._output = output
        self._work = output.work
        self._resumable = resumable
        self._rows: dict[int, Row] = {}
        self._chunkings: Chunkings = {}

    def begin(
        self, attributes: dict[str, Any], chunkings: Chunkings, request: dict[str, Any]
    ) -> dict[int, Row]:
        """Prepare the arrays; return the rows that an interrupted writer of the same has left."""
        self._chunkings = chunkings
        with reporting_os_errors(self.place):
            if self._resumable and self._work.continues(request) and self._work.log.exists():
                self._recover()
            elif self._resumable:
                self._work.restart(request)
            else:
                self._work.clear()
            content = self._output.content
            for name, chunking in chunkings.items():
                (content / name).mkdir(parents=True, exist_ok=True)
                write_json(content / name / "zarr.json", chunking.description())
            write_json(content / "zarr.json", group(attributes))
            if self._resumable:
                self._work.log.write_text("".join(to_line(*one) for one in self._rows.items()))
        return dict(self._rows)

    def add(self, row: int, packed: PackedRow) -> None:
        """Append a row of chunks to its shards, and log it."""
        self._rows[row] = entries(packed)
        for name, chunks in packed.items():
            chunking = self._chunkings[name]
            shard = row // chunking.rows
            file = self._output.content / name / chunking.key(shard)
            rows = chunking.rows_of(shard)
            if row == rows[0]:
                file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb" if row == rows[0] else "ab") as stream:
                stream.writelines(one.content for one in chunks)
                if row == rows[-1]:
                    stream.write(write_index(chunking, shard_lengths(rows, self._rows, name)))
        if self._resumable:
            with self._work.log.open("a") as log:
                log.write(to_line(row, self._rows[row]))

    def finish(self, attributes: dict[str, Any]) -> None:
        """Write the attributes and move the dataset to its place."""
        write_json(self._output.content / "zarr.json", group(attributes))
        self._output.commit()

    def _recover(self) -> None:
        """Take over the rows that are logged, and cut off what was written after them.

        A row whose bytes are not there, after a loss of power, ends its shard.
        """
        logged = from_lines(self._work.log.read_text(errors="replace"), self._chunkings)
        first = next(iter(self._chunkings.values()))
        shards = [first.rows_of(shard) for shard in range(first.shards)]

        def found(rows: range) -> list[int]:
            held = kept_rows(rows, logged)
            return held[: min(self._intact(name, held, logged) for name in self._chunkings)]

        kept = prefetch(found, shards, workers=file_workers())
        for rows, some in zip(shards, kept, strict=True):
            self._rows |= {row: logged[row] for row in some}
            for name in self._chunkings:
                self._cut_off(name, rows, some)

    def _file(self, name: str, row: int) -> Path:
        chunking = self._chunkings[name]
        return self._output.content / name / chunking.key(row // chunking.rows)

    def _intact(self, name: str, rows: list[int], logged: dict[int, Row]) -> int:
        """Return how many of a shard's first rows are as they were logged."""
        begin = 0
        for number, row in enumerate(rows):
            length = sum(one.length for one in logged[row][name])
            try:
                file = self._file(name, row)
                if file_size(file) < begin + length:
                    return number
                content = memoryview(read_range(file, begin, length))
                if not _row_intact(self._chunkings[name], row, logged[row][name], content):
                    return number
            except Exception:  # codecs raise many kinds of errors on damaged bytes
                return number
            begin += length
        return len(rows)

    def _cut_off(self, name: str, rows: range, kept: list[int]) -> None:
        """Leave of a shard only some rows, and its index if they are all."""
        file, chunking = self._file(name, rows[0]), self._chunkings[name]
        if not kept:
            remove(file)
            return
        lengths = shard_lengths(kept, self._rows, name)
        with file.open("r+b") as stream:
            stream.truncate(sum(lengths))
            if len(kept) == len(rows):
                stream.seek(sum(lengths))
                stream.write(write_index(chunking, lengths))


def group(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return what Zarr's `zarr.json` says of a dataset."""
    return {"attributes": attributes, "zarr_format": 3, "node_type": "group"}


def _row_intact(chunking: Chunking, row: int, logged: list[Any], content: memoryview) -> bool:
    begin = 0
    for chunk, (digest, length) in zip(chunking.chunks(row), logged, strict=True):
        values = unpack(content[begin : begin + length], chunking.chunk)
        if checksum(values[tuple(slice(side) for side in extent(chunk.region))]) != digest:
            return False
        begin += length
    return True
