"""Where a dataset lies: in a local folder, or on a storage service; its files are read alike.

Services are reached by fsspec. Each request is tried a few times, then told about: work is cut into
requests that may be repeated without harm, since a range is read, or an object written as a whole.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from twoscale.data.services import is_denied, open_service, reason
from twoscale.errors import TwoscaleError, UnreachableDataError
from twoscale.files import read_json
from twoscale.files.reading import TEXT_LIMIT, json_object, unreadable
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.memory import is_out_of_memory, size_text

Result = TypeVar("Result")

TRIES = 5
FIRST_WAIT = 0.5  # seconds before the second try; doubled before each further one

_URL = re.compile(r"([a-z][a-z0-9+.-]+):(//?)(.*)", re.DOTALL)


class UnreachableStorageError(UnreachableDataError):
    """A storage service that cannot be reached, refuses, or fails again and again."""


class StorageDeniedError(UnreachableStorageError):
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


Place = Path | URL


def place_of(path: str | Path | URL) -> Place:
    """Return the place that a path or a URL names.

    A `Path` drops one of the two slashes of a URL, which is put back here.

    >>> str(place_of(Path("s3://bucket/data.zarr")))
    's3://bucket/data.zarr'
    """
    if isinstance(path, URL):
        return path
    matched = _URL.fullmatch(str(path))
    if matched is None or (matched[2] == "/" and os.path.lexists(path)):
        return Path(path)
    protocol, _, rest = matched.groups()
    if protocol in ("file", "local"):
        return Path("/" + rest.lstrip("/"))
    if not rest.strip("/"):
        raise TwoscaleError(f"{protocol}://{rest} names no place: give {protocol}://BUCKET/NAME")
    return URL(protocol, rest.rstrip("/"))


def exists(place: Place) -> bool:
    """Say whether anything is at a place."""
    return os.path.lexists(place) if isinstance(place, Path) else bool(object_names(place))


def absent(place: Place, names: Sequence[str]) -> list[str]:
    """Return which files are not below a place that holds some.

    A service that does not list its objects is believed to have them: reading them tells.
    """
    if isinstance(place, Path):
        return [name for name in names if not os.path.lexists(place / name)]
    try:
        present = set(object_names(place))
    except StorageDeniedError:
        present = set()
    return [name for name in names if name not in present] if present else []


def read_json_at(place: Place, *, require: dict[str, type] | None = None) -> dict[str, Any]:
    """Return the object that a JSON file holds, as `read_json` does of local files."""
    if isinstance(place, Path):
        return read_json(place, require=require)
    try:
        content = read_small_object(place)
    except FileNotFoundError as error:
        raise TwoscaleError(f"{place} does not exist") from error
    return json_object(content, str(place), require=require)


def file_size(place: Place) -> int:
    """Return the bytes of a regular file; a FileNotFoundError or ValueError says it is none."""
    if isinstance(place, URL):
        return _object_size(place)
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(place, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{place} is not a regular file")
    return status.st_size


def read_range(place: Place, start: int, length: int) -> bytes:
    """Return some bytes of a file whose size is known; fewer if it was cut short meanwhile."""
    if isinstance(place, URL):
        return _read_object(place, start, length)
    try:
        with open(place, "rb", buffering=0) as file:
            file.seek(start)
            return file.read(length)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(place, error) from error


def read_small_object(url: URL) -> bytes:
    """Return a whole object; one of more than 64 MB is refused."""
    size = _object_size(url)
    if size > TEXT_LIMIT:
        limit = size_text(TEXT_LIMIT)
        raise TwoscaleError(f"{url} is too large: at most {limit} are read of such a file")
    return _read_object(url, 0, size)


def write_object(url: URL, content: bytes) -> None:
    """Write an object as a whole; readers find the old one or the new one."""
    try:
        _tried(url, "written", lambda system: system.pipe_file(str(url), content))
    except FileNotFoundError as error:
        text = f"{url} cannot be written: its bucket does not exist"
        raise UnreachableStorageError(text) from error


def object_names(url: URL) -> list[str]:
    """Return the names of all objects below a place, relative to it, in ascending order."""

    def find(system: Any) -> list[str]:
        root = system._strip_protocol(str(url)).rstrip("/") + "/"
        paths = system.find(str(url))
        return sorted(path.removeprefix(root) for path in paths if path.startswith(root))

    try:
        return _tried(url, "listed", find)
    except FileNotFoundError:
        return []


def remove_objects(url: URL, names: Sequence[str]) -> None:
    """Remove some objects below a place; those that are gone already do no harm."""

    def remove(system: Any) -> None:
        try:
            system.rm([str(url / name) for name in names])
        except FileNotFoundError:
            if len(names) > 1:
                remove_objects(url, [name for name in names if name in object_names(url)])

    if names:
        _tried(url, "removed", remove)


def _object_size(url: URL) -> int:
    """Return the bytes of an object; raise FileNotFoundError if there is none."""

    def look(system: Any) -> int:
        described = system.info(str(url))
        if described["type"] != "file":
            raise FileNotFoundError(str(url))
        return int(described["size"])

    return _tried(url, "read", look)


def _read_object(url: URL, start: int, length: int) -> bytes:
    """Return a range of an object."""

    def read(system: Any) -> bytes:
        content = system.cat_file(str(url), start=start, end=start + length)
        if len(content) != length:
            raise OSError(f"{len(content)} of {length} bytes came")
        return bytes(content)

    return _tried(url, "read", read) if length else b""


def _tried(url: URL, verb: str, request: Callable[[Any], Result]) -> Result:
    """Return what a request gives; after some failures raise one sentence that names the place."""
    for number in range(1, TRIES + 1):
        try:
            return request(open_service(url.protocol, url))
        except (FileNotFoundError, TwoscaleError):
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            why, final = reason(url.protocol, error)
            if final or number == TRIES:
                tries = "" if final else f" ({TRIES} tries)"
                kind = StorageDeniedError if is_denied(error) else UnreachableStorageError
                raise kind(f"{url} cannot be {verb}: {why}{tries}") from error
            LOGGER.info("try %d: %s cannot be %s: %s", number, url, verb, why)
        time.sleep(FIRST_WAIT * 2 ** (number - 1))
    raise AssertionError("unreachable")
