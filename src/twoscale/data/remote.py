"""Objects on a storage service, by fsspec: each request is tried a few times, then told about.

The work of a dataset is cut into requests that may be repeated without harm: a range is read, or an
object is written as a whole. So a request that failed, or whose answer never came, is sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from twoscale.data.services import final_reason, is_denied, open_service, reason
from twoscale.errors import TwoscaleError, UnreachableDataError
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.memory import is_out_of_memory, size_text

Result = TypeVar("Result")

TRIES = 5
FIRST_WAIT = 0.5  # seconds before the second try; doubled before each further one


class UnreachableStorageError(UnreachableDataError):
    """A storage service that cannot be reached, refuses, or fails again and again."""


class Denied(UnreachableStorageError):
    """A storage service that does not allow this to the account."""


@dataclass(frozen=True)
class URL:
    """A place on a storage service, such as `s3://bucket/data.zarr`; joined by `/` as a path is."""

    protocol: str
    path: str

    def __str__(self) -> str:
        return f"{self.protocol}://{self.path}"

    def __truediv__(self, name: str) -> URL:
        return URL(self.protocol, f"{self.path}/{name}")

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def with_name(self, name: str) -> URL:
        """Return the place of another name beside this one."""
        folder, slash, _ = self.path.rpartition("/")
        return URL(self.protocol, f"{folder}{slash}{name}")

    def resolve(self) -> URL:
        """Return the place itself: a URL is absolute."""
        return self


def object_size(url: URL) -> int:
    """Return the bytes of an object; raise FileNotFoundError if there is none."""

    def look() -> int:
        found = _filesystem(url).info(str(url))
        if found["type"] != "file":
            raise FileNotFoundError(str(url))
        return int(found["size"])

    return _tried(url, "read", look)


def read_object(url: URL, start: int, length: int) -> bytes:
    """Return a range of an object."""

    def read() -> bytes:
        content = _filesystem(url).cat_file(str(url), start=start, end=start + length)
        if len(content) != length:
            raise OSError(f"{len(content)} of {length} bytes came")
        return bytes(content)

    return _tried(url, "read", read) if length else b""


def read_small_object(url: URL, *, limit: int) -> bytes:
    """Return a whole object; one of more than `limit` bytes is refused."""
    size = object_size(url)
    if size > limit:
        raise TwoscaleError(
            f"{url} is too large: at most {size_text(limit)} are read of such a file"
        )
    return read_object(url, 0, size)


def write_object(url: URL, content: bytes) -> None:
    """Write an object as a whole; readers find the old one or the new one."""
    try:
        _tried(url, "written", lambda: _filesystem(url).pipe_file(str(url), content))
    except FileNotFoundError as error:
        raise UnreachableStorageError(
            f"{url} cannot be written: its bucket does not exist"
        ) from error


def object_names(url: URL) -> list[str]:
    """Return the names of all objects below a place, relative to it, in ascending order."""

    def find() -> list[str]:
        system = _filesystem(url)
        root = system._strip_protocol(str(url)).rstrip("/") + "/"
        found = system.find(str(url))
        return sorted(one.removeprefix(root) for one in found if one.startswith(root))

    try:
        return _tried(url, "listed", find)
    except FileNotFoundError:
        return []


def remove_objects(url: URL, names: list[str]) -> None:
    """Remove some objects below a place; those that are gone already do no harm."""
    if not names:
        return

    def remove() -> None:
        try:
            _filesystem(url).rm([str(url / name) for name in names])
        except FileNotFoundError:
            if len(names) > 1:
                remove_objects(url, [name for name in names if name in object_names(url)])

    _tried(url, "removed", remove)


def _tried(url: URL, verb: str, request: Callable[[], Result]) -> Result:
    """Return what a request gives; after some failures raise one sentence that names the place."""
    for number in range(1, TRIES + 1):
        try:
            return request()
        except (FileNotFoundError, TwoscaleError):
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            final = final_reason(url.protocol, error)
            if final or number == TRIES:
                tries = "" if final else f" ({TRIES} tries)"
                kind = Denied if is_denied(error) else UnreachableStorageError
                raise kind(f"{url} cannot be {verb}: {final or reason(error)}{tries}") from error
            LOGGER.info("try %d: %s cannot be %s: %s", number, url, verb, reason(error))
        time.sleep(FIRST_WAIT * 2 ** (number - 1))
    raise AssertionError("unreachable")


def _filesystem(url: URL) -> Any:
    return open_service(url.protocol, url)
