"""Files and folders that appear complete or not at all, and JSON."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError


def target(path: str | Path, *, overwrite: bool, ours: Callable[[Path], bool]) -> Path:
    """Return the place a result will go to, or raise before any work is done.

    Something that is there already is replaced only if asked, and only if it is `ours`.
    """
    place = Path(path).resolve()
    if place.exists():
        if not overwrite:
            raise TwoscaleError(f"{path} exists already: choose another --out or pass --overwrite")
        if not ours(place):
            raise TwoscaleError(
                f"{path} is something else and is not replaced: choose another --out"
            )
    return place


def beside(place: Path) -> Path:
    """Return where a result is prepared: in the same folder, under another name."""
    return place.with_name(place.name + ".partial")


class Parents:
    """The folders above a place that had to be made, to be removed again if nothing comes."""

    def __init__(self, place: Path) -> None:
        self.made = [parent for parent in place.parents if not parent.exists()]
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TwoscaleError(f"cannot write {place}: {error.strerror or error}") from error

    def remove(self) -> None:
        for parent in self.made:
            with suppress(OSError):  # not empty: it holds the result, or someone else's
                parent.rmdir()


def put(prepared: Path, place: Path) -> None:
    """Move a prepared file or folder to its place; what was there goes only after that."""
    old = place.with_name(place.name + ".old")
    remove(old)
    try:
        if place.exists():
            place.rename(old)
        prepared.rename(place)
    except BaseException:
        if old.exists() and not place.exists():
            old.rename(place)
        raise
    remove(old)


def remove(path: Path) -> None:
    """Remove a file or folder if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def complete(place: Path) -> Iterator[Path]:
    """Give a path beside `place` to write to; it becomes `place` only if all goes well."""
    prepared = beside(place)
    parents = Parents(place)
    try:
        remove(prepared)
        yield prepared
        put(prepared, place)
    except OSError as error:
        raise TwoscaleError(f"cannot write {place}: {error.strerror or error}") from error
    finally:
        remove(prepared)
        parents.remove()


def to_json(content: Any) -> str:
    """Return readable JSON; numbers that JSON has no word for become null."""
    return json.dumps(_plain(content), indent=2, allow_nan=False)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    path.write_text(to_json(content) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_json(path: Path, *, require: dict[str, type] | None = None) -> dict[str, Any]:
    """Return the object a JSON file holds, which must have values of the `require`d types."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise TwoscaleError(f"{path} does not exist") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TwoscaleError(f"{path} is damaged or not JSON: {error}") from error
    if not isinstance(content, dict):
        raise TwoscaleError(f"{path} should hold a JSON object")
    wrong = [key for key, kind in (require or {}).items() if not isinstance(content.get(key), kind)]
    if wrong:
        raise TwoscaleError(f"{path} is damaged: it lacks a proper {', '.join(wrong)}")
    return content
