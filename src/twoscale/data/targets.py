"""Where a dataset is written: a local folder, in which shards grow and which appears all at once.

What is written so far is known by a log: the checksum and length of every chunk, a line of JSON for
each row of chunks. `remote_target` is the same for a storage service.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from twoscale.data.chunking import Chunking
from twoscale.data.description import is_replaceable
from twoscale.data.places import read_range
from twoscale.data.shards import checksum, unpack, write_index
from twoscale.files import claimed, remove, write_json
from twoscale.files.outputs import Output
from twoscale.files.reading import is_a
from twoscale.files.work_folder import reporting_os_errors
from twoscale.runtime.threads import file_workers, prefetch


class Packed(NamedTuple):
    """A compressed chunk, and the checksum of its values."""

    checksum: str
    content: bytes


PackedRow = dict[str, list[Packed]]
"""The compressed chunks of all arrays that hold the same samples, by the array's name."""

WrittenRow = dict[str, list[tuple[str, int]]]
"""The checksums and lengths of such chunks."""

Chunkings = Mapping[str, Chunking]


@contextmanager
def local_target(path: Path, *, overwrite: bool, resumable: bool) -> Iterator[LocalTarget]:
    """Give the target for a dataset in a local folder; nothing is left of a block that fails.

    What a later command can go on with stays beside the place.
    """
    with claimed(path, overwrite=overwrite, may_replace=is_replaceable) as output:
        yield LocalTarget(output, resumable=resumable)


class LocalTarget:
    """Writes a dataset into the content of an output, appending rows of chunks to shards."""

    def __init__(self, output: Output, *, resumable: bool) -> None:
        self.place = output.place
        self._output = output
        self._work = output.work
        self._resumable = resumable
        self._chunkings: Chunkings = {}

    def begin(
        self, attributes: dict[str, Any], chunkings: Chunkings, request: dict[str, Any]
    ) -> dict[int, WrittenRow]:
        """Prepare the arrays; return the rows that an interrupted writer of the same has left."""
        self._chunkings = chunkings
        written: dict[int, WrittenRow] = {}
        with reporting_os_errors(self.place):
            if self._resumable and self._work.continues(request) and self._work.log.exists():
                written = self._recovered()
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
                lines = (log_line(*one) for one in written.items())
                self._work.log.write_text("".join(lines))
        return written

    def append(self, row: int, contents: dict[str, list[bytes]], line: str) -> None:
        """Append bytes of a row to the shard of each array, and the line to the log.

        The row is the first of its shard, or that after the last one.
        """
        for name, content in contents.items():
            file = self._file(name, row)
            first = row == self._chunkings[name].shard_rows(row)[0]
            if first:
                file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb" if first else "ab") as stream:
                stream.writelines(content)
        if self._resumable:
            with self._work.log.open("a") as log:
                log.write(line)

    def finish(self, attributes: dict[str, Any]) -> None:
        """Let the dataset appear with these attributes."""
        write_json(self._output.content / "zarr.json", group(attributes))
        self._output.commit()

    def _file(self, name: str, row: int) -> Path:
        chunking = self._chunkings[name]
        return self._output.content / name / chunking.key(row // chunking.rows)

    def _recovered(self) -> dict[int, WrittenRow]:
        """Return the rows that are logged, and cut off what was written after them.

        A row whose bytes are not there, after a loss of power, ends its shard.
        """
        logged = from_lines(self._work.log.read_text(errors="replace"), self._chunkings)
        first = next(iter(self._chunkings.values()))
        shards = [first.rows_of(shard) for shard in range(first.shards)]

        def kept(rows: range) -> list[int]:
            intact: list[int] = []
            for row in rows:
                if row not in logged or not all(
                    self._is_intact(name, row, logged) for name in self._chunkings
                ):
                    break
                intact.append(row)
            return intact

        written: dict[int, WrittenRow] = {}
        for rows, some in zip(shards, prefetch(kept, shards, workers=file_workers()), strict=True):
            written |= {row: logged[row] for row in some}
            for name in self._chunkings:
                self._cut_off(name, rows, shard_lengths(some, logged, name))
        return written

    def _is_intact(self, name: str, row: int, logged: Mapping[int, WrittenRow]) -> bool:
        """Say whether the chunks of a row are as they were logged, after those before it."""
        chunking = self._chunkings[name]
        before = shard_lengths(range(chunking.shard_rows(row)[0], row), logged, name)
        length = sum(shard_lengths([row], logged, name))
        try:
            content = memoryview(read_range(self._file(name, row), sum(before), length))
            for chunk, (digest, length) in zip(
                chunking.chunks(row), logged[row][name], strict=True
            ):
                if checksum(unpack(content[:length], chunking, chunk)) != digest:
                    return False
                content = content[length:]
        except Exception:  # codecs raise many kinds of errors on damaged bytes
            return False
        return True

    def _cut_off(self, name: str, rows: range, lengths: list[int]) -> None:
        """Leave of a shard only its first chunks, and its index if they are all."""
        file, chunking = self._file(name, rows[0]), self._chunkings[name]
        if not lengths:
            remove(file)
            return
        with file.open("r+b") as stream:
            stream.truncate(sum(lengths))
            if len(lengths) == len(rows) * chunking.tiles:
                stream.seek(sum(lengths))
                stream.write(write_index(chunking, lengths))


def group(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return what Zarr's `zarr.json` says of a dataset."""
    return {"attributes": attributes, "zarr_format": 3, "node_type": "group"}


def log_line(row: int, written: WrittenRow) -> str:
    """Return a row as a line of a log."""
    return json.dumps({"row": row, "chunks": written}) + "\n"


def from_lines(text: str, chunkings: Chunkings) -> dict[int, WrittenRow]:
    """Return the rows of a log, up to the first line that is none: an interruption cut it short."""
    rows: dict[int, WrittenRow] = {}
    for line in text.splitlines():
        try:
            parsed = json.loads(line)
            row, chunks = parsed["row"], parsed["chunks"]
            written = {
                name: [(str(digest), length) for digest, length in chunks[name]]
                for name in chunkings
            }
        except (ValueError, KeyError, TypeError, RecursionError):
            break
        lengths = [length for some in written.values() for _, length in some]
        if not all(is_a(length, int) and length > 0 for length in lengths) or not all(
            is_a(row, int) and row in range(one.grid[0]) and len(written[name]) == one.tiles
            for name, one in chunkings.items()
        ):
            break
        rows[row] = written
    return rows


def shard_lengths(rows: Iterable[int], written: Mapping[int, WrittenRow], name: str) -> list[int]:
    """Return the lengths of an array's chunks in some rows, in the order of a shard."""
    return [length for row in rows for _, length in written[row][name]]
