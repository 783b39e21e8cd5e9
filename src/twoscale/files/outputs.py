"""Files and folders that appear complete or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
