"""A dataset written to a storage service: shard by shard, and complete with its last object.

Objects cannot be moved there. So the description in `zarr.json` says that the dataset is not
complete until all else is written, and is then written again. What a later command needs to go on
lies beside the dataset, in objects below `.NAME.twoscale-work`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from twoscale.data.local_target import group
from twoscale.data.parts import FORMAT, is_part
from twoscale.data.places import read_json_at
from twoscale.data.remote import (
    URL,
    UnreachableStorageError,
    object_names,
    object_size,
    read_small_object,
    remove_objects,
    write_object,
)
from twoscale.data.shards import index_bytes, write_index
from twoscale.data.written import (
    Chunkings,
    PackedRow,
    Row,
    entries,
    from_lines,
    refuse_existing,
    shard_lengths,
    to_line,
)
from twoscale.errors import ResumableError, TwoscaleError
from twoscale.files import content_digest, to_json
from twoscale.files.reading import TEXT_LIMIT
from twoscale.files.work_folder import CONTINUES, SUFFIX
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.threads import prefetch

_REQUESTS = 8  # at once
_REQUEST = "request.json"


@contextmanager
def remote_target(url: URL, *, overwrite: bool, resumable: bool) -> Iterator[RemoteTarget]:
    """Give the target for a dataset on a storage service.

    Of a block that fails nothing stays, except what a later command can go on with, and what cannot
    be removed because the service does not answer.
    """
    target = RemoteTarget(url, overwrite=overwrite, resumable=resumable)
    try:
        yield target
    except BaseException as error:
        stopped = isinstance(error, ResumableError) or not isinstance(error, TwoscaleError)
        if target.begun and stopped and target.can_go_on:
            error.add_note(CONTINUES)
        elif target.begun and not isinstance(error, UnreachableStorageError):
            with suppress(Exception):  # what made the block fail is told, not this
                target.remove()
        raise


class RemoteTarget:
    """Writes a dataset as objects; the chunks of one shard of each array are held in memory."""

    def __init__(self, url: URL, *, overwrite: bool, resumable: bool) -> None:
        self.place = url
        self.begun = False  # something may be written
        self.can_go_on = False  # a shard is finished that a later command can take over
        self._overwrite, self._resumable = overwrite, resumable
        self._work = url.with_name(f".{url.name}{SUFFIX}")
        self._owner = uuid4().hex  # there are no locks: whoever comes last is the only one
        self._rows: dict[int, Row] = {}
        self._chunkings: Chunkings = {}
        self._digest = ""  # of the request
        self._shards: dict[str, bytearray] = {}

    def begin(
        self, attributes: dict[str, Any], chunkings: Chunkings, request: dict[str, Any]
    ) -> dict[int, Row]:
        """Prepare the arrays; return the rows that an interrupted writer of the same has left."""
        self._chunkings, self._digest = chunkings, content_digest(request)
        names = object_names(self.place)
        stored = self._stored() if "zarr.json" in names else {}
        begun = stored == json.loads(to_json(attributes)) and all(map(is_part, names))
        if begun and self._continues(request):
            self._rows = self._recovered()
        else:
            self._refuse(names, stored)
        self.begun, self.can_go_on = True, bool(self._rows)
        if not self._rows:
            remove_objects(self._work, object_names(self._work))
        write_object(self._work / _REQUEST, _json({"request": request, "owner": self._owner}))
        write_object(self.place / "zarr.json", _json(group(attributes)))
        if not self._rows:
            remove_objects(self.place, [name for name in names if name != "zarr.json"])
        for name, chunking in chunkings.items():
            write_object(self.place / name / "zarr.json", _json(chunking.description()))
        return dict(self._rows)

    def add(self, row: int, packed: PackedRow) -> None:
        """Keep a row of chunks; with the last one of a shard, write and log the shard."""
        self._rows[row] = entries(packed)
        for name, chunks in packed.items():
            shard = self._shards.setdefault(name, bytearray())
            for one in chunks:
                shard += one.content
        rows = self._rows_with(row)
        if row == rows[-1]:
            self._write_shards(rows)

    def finish(self, attributes: dict[str, Any]) -> None:
        """Write the description of the complete dataset, and remove what led to it."""
        self._refuse_lost()
        write_object(self.place / "zarr.json", _json(group(attributes)))
        try:
            remove_objects(self._work, object_names(self._work))
        except (
            UnreachableStorageError
        ) as error:  # the dataset is complete: this is no reason to fail
            LOGGER.info("%s is left: %s", self._work, error)

    def remove(self) -> None:
        """Remove what was written, unless another command has taken the place.

        The description goes last: if this is stopped, what is left is still known as ours.
        """
        if not self._owns():
            return
        names = [name for name in object_names(self.place) if is_part(name)]
        remove_objects(self.place, [name for name in names if name != "zarr.json"])
        remove_objects(self.place, [name for name in names if name == "zarr.json"])
        remove_objects(self._work, object_names(self._work))

    def _owns(self) -> bool:
        """Say whether no other command has begun to write here since this one did.

        One that has also finished has removed the note of who writes.
        """
        return self._noted().get("owner") == self._owner

    def _refuse_lost(self) -> None:
        """Raise if another command has taken the place."""
        if not self._owns():
            raise TwoscaleError(
                f"another command has taken the place {self.place}: wait for it, or choose "
                "another path"
            )

    def _noted(self) -> dict[str, Any]:
        """Return the request and the owner of the last writer; empty if nothing can be read."""
        try:
            return read_json_at(self._work / _REQUEST)
        except UnreachableStorageError:
            raise
        except TwoscaleError:
            return {}

    def _stored(self) -> dict[str, Any]:
        """Return the attributes of the dataset that is there, if it is one."""
        try:
            found = read_json_at(self.place / "zarr.json", require={"attributes": dict})
        except UnreachableStorageError:
            raise
        except TwoscaleError:
            return {}
        return found["attributes"] if found["attributes"].get("format") == FORMAT else {}

    def _refuse(self, names: list[str], stored: dict[str, Any]) -> None:
        """Raise if something is at the place that this command must not replace."""
        if not names:
            return
        if not self._overwrite and stored.get("complete") is not False:
            raise refuse_existing(self.place)
        if not stored or not all(map(is_part, names)):
            raise TwoscaleError(
                f"{self.place} is something else, or holds other files too, and is not replaced: "
                "choose another path"
            )
        if not self._overwrite:
            raise TwoscaleError(
                f"{self.place} holds an unfinished dataset of another command: run that command "
                "again, or set overwrite"
            )

    def _continues(self, request: dict[str, Any]) -> bool:
        """Say whether the state of this very request is there."""
        return self._resumable and self._noted().get("request") == json.loads(to_json(request))

    def _recovered(self) -> dict[int, Row]:
        """Return the rows of the shards that are logged, and whose objects have the right size."""
        found: dict[int, Row] = {}
        first = next(iter(self._chunkings.values()))

        def look(shard: int) -> dict[int, Row]:
            try:
                text = read_small_object(self._log(shard), limit=TEXT_LIMIT)
                logged = from_lines(text.decode(errors="replace"), self._chunkings)
                rows = first.rows_of(shard)
                if set(logged) == set(rows) and self._right_sizes(rows, logged):
                    return logged
            except FileNotFoundError:
                pass
            return {}

        for rows in prefetch(look, range(first.shards), workers=_REQUESTS):
            found |= rows
        return found

    def _log(self, shard: int) -> URL:
        """Return the place of a shard's log; what another request logs late is never taken up."""
        return self._work / f"{self._digest}-shard-{shard}.json"

    def _right_sizes(self, rows: range, logged: dict[int, Row]) -> bool:
        for name, chunking in self._chunkings.items():
            expected = sum(shard_lengths(rows, logged, name)) + index_bytes(chunking)
            if object_size(self.place / name / chunking.key(rows[0] // chunking.rows)) != expected:
                return False
        return True

    def _rows_with(self, row: int) -> range:
        """Return the rows that share a shard with this one."""
        chunking = next(iter(self._chunkings.values()))
        return chunking.rows_of(row // chunking.rows)

    def _write_shards(self, rows: range) -> None:
        """Write the shards of all arrays that hold some rows, then note that they are there."""
        self._refuse_lost()

        def write(name: str) -> None:
            chunking = self._chunkings[name]
            shard = self._shards.pop(name)
            shard += write_index(chunking, shard_lengths(rows, self._rows, name))
            write_object(self.place / name / chunking.key(rows[0] // chunking.rows), bytes(shard))

        for _ in prefetch(write, list(self._shards), workers=_REQUESTS):
            pass
        if self._resumable:
            shard = rows[0] // next(iter(self._chunkings.values())).rows
            lines = "".join(to_line(row, self._rows[row]) for row in rows)
            write_object(self._log(shard), lines.encode())
            self.can_go_on = True


def _json(content: dict[str, Any]) -> bytes:
    return (to_json(content) + "\n").encode()
