"""Where a dataset lies: in a local folder, or on a storage service; its files are read alike."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twoscale.data.remote import (
    URL,
    Denied,
    object_names,
    object_size,
    read_object,
    read_small_object,
)
from twoscale.errors import TwoscaleError
from twoscale.files import read_json
from twoscale.files.reading import TEXT_LIMIT, json_object, unreadable

Place = Path | URL

_URL = re.compile(r"([a-z][a-z0-9+.-]+):(//?)(.*)", re.DOTALL)
_LOCAL = ("file", "local")


def place_of(path: str | Path | URL) -> Place:
    """Return the place that a path or a URL names.

    A `Path` drops one of the two slashes of a URL, which is put back here.

    >>> str(place_of(Path("s3://bucket/data.zarr")))
    's3://bucket/data.zarr'
    """
    if isinstance(path, URL):
        return path
    found = _URL.fullmatch(str(path))
    if found is None or (found[2] == "/" and os.path.lexists(path)):
        return Path(path)
    protocol, _, rest = found.groups()
    if protocol in _LOCAL:
        return Path("/" + rest.lstrip("/"))
    if not rest.strip("/"):
        raise TwoscaleError(f"{protocol}://{rest} names no place: give {protocol}://BUCKET/NAME")
    return URL(protocol, rest.rstrip("/"))


def local_only(path: str | Path) -> None:
    """Raise if a path is that of a storage service, where only datasets are read."""
    place = place_of(path)
    if isinstance(place, URL):
        raise TwoscaleError(
            f"{place} is on a storage service, from which only datasets are read: copy it here "
            "first, then import it"
        )


def exists(place: Place) -> bool:
    """Say whether anything is at a place."""
    if isinstance(place, Path):
        return os.path.lexists(place)
    return bool(object_names(place))


def absent(place: Place, names: Sequence[str]) -> list[str]:
    """Return which files are not below a place that holds some.

    A service that does not list its objects is believed to have them: reading them tells.
    """
    if isinstance(place, Path):
        return [name for name in names if not os.path.lexists(place / name)]
    try:
        held = set(object_names(place))
    except Denied:
        held = set()
    return [name for name in names if name not in held] if held else []


def read_json_at(place: Place, *, require: dict[str, type] | None = None) -> dict[str, Any]:
    """Return the object that a JSON file holds, as `read_json` does of local files."""
    if isinstance(place, Path):
        return read_json(place, require=require)
    try:
        content = read_small_object(place, limit=TEXT_LIMIT)
    except FileNotFoundError as error:
        raise TwoscaleError(f"{place} does not exist") from error
    return json_object(content, str(place), require=require)


def file_size(place: Place) -> int:
    """Return the bytes of a regular file; a FileNotFoundError or ValueError says it is none."""
    if isinstance(place, URL):
        return object_size(place)
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(place, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{place} is not a regular file")
    return found.st_size


def read_range(place: Place, start: int, length: int) -> bytes:
    """Return some bytes of a file whose size is known; fewer if it was cut short meanwhile."""
    if isinstance(place, URL):
        return read_object(place, start, length)
    try:
        with open(place, "rb", buffering=0) as file:
            file.seek(start)
            return file.read(length)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(place, error) from error
