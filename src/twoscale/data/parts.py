"""The files that make a dataset, and how a folder is known to be one, or what is left of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twoscale.data.chunking import Chunking, is_our_array
from twoscale.data.places import Place, absent
from twoscale.data.remote import URL, object_names
from twoscale.errors import TwoscaleError, UnreachableDataError, UnreadableDataError
from twoscale.files import read_json
from twoscale.runtime.memory import is_out_of_memory

FORMAT = "twoscale-dataset"
ARRAYS = ("input", "parameters", "output")
DESCRIPTION = "zarr.json"  # of the dataset, and of each array
REPAIR = "copy all its files again, or generate or import it again"
_SHARDS = "c"


def is_part(name: str) -> bool:
    """Say whether a file of this name, relative to the dataset, is one that we write into it."""
    first, _, rest = name.partition("/")
    return name == DESCRIPTION or (
        first in ARRAYS and (rest == DESCRIPTION or rest.startswith(f"{_SHARDS}/"))
    )


def missing_shards(place: Place, chunkings: dict[str, Chunking]) -> list[str]:
    """Return the names of the shards that are not there, relative to the dataset."""
    return absent(
        place,
        [
            f"{name}/{chunking.key(shard)}"
            for name, chunking in chunkings.items()
            for shard in range(chunking.shards)
        ],
    )


def is_dataset(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, whatever its state."""
    try:
        attributes = read_json(path / DESCRIPTION, require={"attributes": dict})["attributes"]
    except TwoscaleError:
        return False
    return bool(attributes.get("format") == FORMAT)


def may_be_dataset(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, is too damaged to tell, or is left of one."""
    if not (path / DESCRIPTION).exists():
        return is_remainder(path)
    try:
        attributes = read_json(path / DESCRIPTION).get("attributes", {})
    except TwoscaleError:
        return True
    said = not isinstance(attributes, dict) or attributes.get("format") == FORMAT
    return said or _has_our_arrays(path)


def is_remainder(place: Place) -> bool:
    """Say whether a dataset without its description is at a place, or some of its files.

    A Zarr array of somebody else is none, even if it has the name of one of ours.
    """
    if isinstance(place, URL):  # where only datasets are read
        names = object_names(place)
        return DESCRIPTION not in names and any(is_part(name) for name in names)
    if not place.is_dir() or os.path.lexists(place / DESCRIPTION):
        return False
    return _has_our_arrays(place) or _has_shards_alone(place)


def is_replaceable(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, and holds nothing but what we write."""
    if not is_dataset(path):
        return False
    held = {entry.name for entry in path.iterdir()} - {DESCRIPTION}
    inside = {entry.name for name in ARRAYS for entry in (path / name).glob("*")}
    return held <= set(ARRAYS) and inside <= {DESCRIPTION, _SHARDS}


def is_array(folder: Path) -> bool:
    """Say whether a folder is an array of a dataset, by how it is cut and compressed."""
    try:
        return is_our_array(read_json(folder / DESCRIPTION))
    except TwoscaleError:
        return False


def lost(place: Place, name: str, others: int = 0) -> UnreadableDataError:
    """Return the error for a dataset that lacks a file, and perhaps others."""
    missing = f"{others + 1} files are missing, first {name}" if others else f"{name} is missing"
    return UnreadableDataError(f"{place} is damaged: {missing}; {REPAIR}")


@contextmanager
def reading_samples() -> Iterator[None]:
    """Turn the errors of the block into those of `unreadable_data`, but for a lack of memory."""
    try:
        yield
    except UnreadableDataError:
        raise
    except TwoscaleError as error:
        if is_out_of_memory(error):
            raise
        raise unreadable_data(str(error), error) from error.__cause__ or error


def unreadable_data(text: str, error: BaseException) -> UnreadableDataError:
    """Return the error for data that cannot be read because of another error.

    If that came from the operating system, reading may work later.
    """
    number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
    failed = number is not None and number > 0  # libraries of file formats make their own OSErrors
    return (UnreachableDataError if failed else UnreadableDataError)(text)


def _has_our_arrays(path: Path) -> bool:
    return any(is_array(path / name) for name in ARRAYS)


def _has_shards_alone(path: Path) -> bool:
    """Say whether a folder holds shards in the places of our arrays, and nothing else."""
    held = {entry.name for entry in path.iterdir()}
    inside = {entry.name for name in held for entry in (path / name).glob("*")}
    return held <= set(ARRAYS) and inside == {_SHARDS}
