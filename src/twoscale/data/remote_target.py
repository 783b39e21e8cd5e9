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

from twoscale.data.description import DESCRIPTION, FORMAT, is_dataset_file
from twoscale.data.places import (
    URL,
    UnreachableStorageError,
    file_size,
    object_names,
    read_json_at,
    read_small_object,
    remove_objects,
    write_object,
)
from twoscale.data.shards import index_bytes
from twoscale.data.targets import Chunkings, WrittenRow, from_lines, group, shard_lengths
from twoscale.errors import ResumableError, TwoscaleError
from twoscale.files import content_digest, to_json
from twoscale.files.work_folder import CONTINUES, SUFFIX
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.threads import prefetch

_REQUESTS = 8  # at once


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
    """Writes a dataset as objects; one shard of each array is held in memory.

    See `LocalTarget` for the methods `begin`, `append` and `finish`.
    """

    def __init__(self, url: URL, *, overwrite: bool, resumable: bool) -> None:
        self.place = url
        self.begun = False  # something may be written
        self.can_go_on = False  # a shard is finished that a later command can take over
        self._overwrite, self._resumable = overwrite, resumable
        self._work = url.with_name(f".{url.name}{SUFFIX}")
        self._request = self._work / "request.json"
        self._owner = uuid4().hex  # there are no locks: whoever comes last is the only one
        self._chunkings: Chunkings = {}
        self._digest = ""  # of the request
        self._shards: dict[str, bytearray] = {}
        self._lines = ""  # of the log, of the rows in these shards

    def begin(
        self, attributes: dict[str, Any], chunkings: Chunkings, request: dict[str, Any]
    ) -> dict[int, WrittenRow]:
        self._chunkings, self._digest = chunkings, content_digest(request)
        names = object_names(self.place)
        stored = self._stored() if DESCRIPTION in names else {}
        begun = stored == json.loads(to_json(attributes)) and all(map(is_dataset_file, names))
        noted = self._noted().get("request") if begun and self._resumable else None
        written: dict[int, WrittenRow] = {}
        if begun and noted == json.loads(to_json(request)):
            written = self._recovered()
        else:
            self._refuse(names, stored)
        self.begun, self.can_go_on = True, bool(written)
        if not written:
            remove_objects(self._work, object_names(self._work))
        write_object(self._request, _json({"request": request, "owner": self._owner}))
        write_object(self.place / DESCRIPTION, _json(group(attributes)))
        if not written:
            remove_objects(self.place, [name for name in names if name != DESCRIPTION])
        for name, chunking in chunkings.items():
            write_object(self.place / name / DESCRIPTION, _json(chunking.description()))
        return written

    def append(self, row: int, contents: dict[str, list[bytes]], line: str) -> None:
        """Keep bytes of a row; with the last row of a shard, write and log the shard."""
        self._lines += line
        for name, content in contents.items():
            self._shards.setdefault(name, bytearray()).extend(b"".join(content))
        chunking = next(iter(self._chunkings.values()))
        if row != chunking.shard_rows(row)[-1]:
            return
        self._refuse_lost()
        shard = row // chunking.rows

        def write(name: str) -> None:
            key = self._chunkings[name].key(shard)
            write_object(self.place / name / key, bytes(self._shards.pop(name)))

        for _ in prefetch(write, list(self._shards), workers=_REQUESTS):
            pass
        if self._resumable:
            write_object(self._log(shard), self._lines.encode())
            self.can_go_on = True
        self._lines = ""

    def finish(self, attributes: dict[str, Any]) -> None:
        """Write the description of the complete dataset, and remove what led to it."""
        self._refuse_lost()
        write_object(self.place / DESCRIPTION, _json(group(attributes)))
        try:
            remove_objects(self._work, object_names(self._work))
        except UnreachableStorageError as error:  # the dataset is complete: no reason to fail
            LOGGER.info("%s is left: %s", self._work, error)

    def remove(self) -> None:
        """Remove what was written, unless another command has taken the place.

        The description goes last: if this is stopped, what is left is still known as ours.
        """
        if not self._owns():
            return
        names = [name for name in object_names(self.place) if is_dataset_file(name)]
        remove_objects(self.place, [name for name in names if name != DESCRIPTION])
        remove_objects(self.place, [name for name in names if name == DESCRIPTION])
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
        return _read_or_nothing(self._request)

    def _stored(self) -> dict[str, Any]:
        """Return the attributes of the dataset that is there, if it is one."""
        stored = _read_or_nothing(self.place / DESCRIPTION).get("attributes")
        return stored if isinstance(stored, dict) and stored.get("format") == FORMAT else {}

    def _refuse(self, names: list[str], stored: dict[str, Any]) -> None:
        """Raise if something is at the place that this command must not replace."""
        if not names:
            return
        if not self._overwrite and stored.get("complete") is not False:
            text = f"{self.place} exists already: choose another path, or set overwrite"
            raise TwoscaleError(text)
        if not stored or not all(map(is_dataset_file, names)):
            raise TwoscaleError(
                f"{self.place} is something else, or holds other files too, and is not replaced: "
                "choose another path"
            )
        if not self._overwrite:
            raise TwoscaleError(
                f"{self.place} holds an unfinished dataset of another command: run that command "
                "again, or set overwrite"
            )

    def _recovered(self) -> dict[int, WrittenRow]:
        """Return the rows of the shards that are logged, and whose objects have the right size."""
        first = next(iter(self._chunkings.values()))

        def look(shard: int) -> dict[int, WrittenRow]:
            try:
                text = read_small_object(self._log(shard)).decode(errors="replace")
                logged, rows = from_lines(text, self._chunkings), first.rows_of(shard)
                if set(logged) == set(rows) and all(
                    file_size(self.place / name / chunking.key(shard))
                    == sum(shard_lengths(rows, logged, name)) + index_bytes(chunking)
                    for name, chunking in self._chunkings.items()
                ):
                    return logged
            except FileNotFoundError:
                pass
            return {}

        written: dict[int, WrittenRow] = {}
        for rows in prefetch(look, range(first.shards), workers=_REQUESTS):
            written |= rows
        return written

    def _log(self, shard: int) -> URL:
        """Return the place of a shard's log; what another request logs late is never taken up."""
        return self._work / f"{self._digest}-shard-{shard}.json"


def _read_or_nothing(url: URL) -> dict[str, Any]:
    """Return the JSON object at a place; empty if there is none that can be read."""
    try:
        return read_json_at(url)
    except UnreachableStorageError:
        raise
    except TwoscaleError:
        return {}


def _json(content: dict[str, Any]) -> bytes:
    return (to_json(content) + "\n").encode()
