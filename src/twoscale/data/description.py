"""What a dataset says about itself, none of which is believed, and the files that make it.

A description has spaces, ranks, problem and checksums. The files say how a folder is known to be a
dataset, or what is left of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from twoscale import problems
from twoscale.data.chunking import Chunking, is_our_array
from twoscale.data.places import (
    URL,
    Place,
    UnreachableStorageError,
    exists,
    object_names,
    read_json_at,
)
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError, UnreachableDataError, UnreadableDataError
from twoscale.fields.samples import fits_rank, sample_shape
from twoscale.files import content_digest, read_json
from twoscale.files.reading import is_a
from twoscale.problems import Problem
from twoscale.runtime.memory import is_out_of_memory, size_text

FORMAT = "twoscale-dataset"
FORMAT_VERSION = 4
ARRAYS = ("input", "parameters", "output")
SIDES = ("input", "output")
DESCRIPTION = "zarr.json"  # of the dataset, and of each array
REPAIR = "copy all its files again, or generate or import it again"
_SHARDS = "c"
_DAMAGED = object()  # in place of a format
_CHUNK_BYTES = 2**22
_SHARD_BYTES = 2**27
_LARGEST_SAMPLE = 2**31 - 2**20  # bytes: more than the compression of one chunk can take
_OPTIONAL = {"seed": int, "distribution": dict, "boundary": str, "solver": str}
"""Entries of a description that are of this type or null."""


@dataclass(frozen=True)
class Side:
    """Inputs or outputs of a dataset: their space, and the number of axes they have on disk.

    The rank is 2 for (samples, length), 3 for (samples, height, width), 4 for (samples, channels,
    height, width) and None for parameters without fields.
    """

    space: Space
    rank: int | None

    def __post_init__(self) -> None:
        if self.rank == 0 or not fits_rank(self.space, self.rank or 0):
            raise TwoscaleError(f"fields of {self.space} are not stored with {self.rank} axes")

    @property
    def sample_shape(self) -> tuple[int, ...] | None:
        """Return the shape on disk of one sample's fields; None without fields."""
        return None if self.rank is None else sample_shape(self.space, self.rank)

    def as_dict(self) -> dict[str, Any]:
        return self.space.as_dict() | {"rank": self.rank}

    @classmethod
    def from_dict(cls, stored: Any) -> Side:
        """Return the side of a description, or raise a TwoscaleError."""
        try:
            if stored["rank"] is not None and not is_a(stored["rank"], int):
                raise TypeError("a rank is a whole number")
            side = cls(Space.from_dict(stored), stored["rank"])
        except (LookupError, TypeError, ValueError) as error:
            raise TwoscaleError(f"a side of a dataset has a space and a rank: {error}") from error
        if content_digest(side.as_dict()) != content_digest(stored):  # also in types
            raise TwoscaleError("a side of a dataset has a space and a rank, and nothing else")
        return side


@dataclass(frozen=True)
class Layout:
    """The arrays of a dataset: how many samples of what."""

    samples: int
    input: Side
    output: Side

    def __post_init__(self) -> None:
        if self.output.space.parameters:
            raise TwoscaleError("outputs are fields: parameters belong to the inputs")

    @property
    def sample_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of one sample of each array there is, by the array's name."""
        count = self.input.space.parameters
        shapes = {
            "input": self.input.sample_shape,
            "parameters": (count,) if count else None,
            "output": self.output.sample_shape,
        }
        return {name: shape for name, shape in shapes.items() if shape is not None}

    @property
    def chunk(self) -> int:
        """Return how many samples share a stored chunk: about 4 MiB of the largest array."""
        return max(1, _CHUNK_BYTES // (4 * self.largest))

    @property
    def shard(self) -> int:
        """Return how many samples share a file: about 128 MiB of the largest array, in chunks."""
        return max(1, _SHARD_BYTES // (4 * self.largest) // self.chunk) * self.chunk

    @property
    def chunkings(self) -> dict[str, Chunking]:
        """Return how each array is cut."""
        size = {"chunk": self.chunk, "shard": self.shard, "most": _CHUNK_BYTES}
        shapes = self.sample_shapes.items()
        return {name: Chunking.of(self.samples, shape, **size) for name, shape in shapes}

    @property
    def largest(self) -> int:
        """Return the number of values that one sample of the largest array has."""
        return max(prod(shape) for shape in self.sample_shapes.values())

    @property
    def sample_bytes(self) -> int:
        """Return the bytes of one sample of all arrays."""
        return 4 * sum(prod(shape) for shape in self.sample_shapes.values())

    def refuse_large(self) -> None:
        """Raise if a single sample is too large to be stored."""
        if 4 * self.largest > _LARGEST_SAMPLE:
            size, most = size_text(4 * self.largest), size_text(_LARGEST_SAMPLE)
            advice = "use fewer channels or a coarser grid"
            raise TwoscaleError(f"one sample takes {size}, at most {most} can be stored: {advice}")

    def __str__(self) -> str:
        """Say what the pairs are, such as "16x16 fields" or "2 parameters to 3x8x8 fields"."""
        inputs, outputs = self.input.space, self.output.space
        if inputs.shape == outputs.shape and inputs.grid == outputs.grid and not inputs.parameters:
            return f"{outputs} fields"
        parts = []
        if inputs.channels:
            parts.append(f"{Space(inputs.grid, inputs.channels)} fields")
        if inputs.parameters:
            parts.append(f"{inputs.parameters} parameter{'s' if inputs.parameters > 1 else ''}")
        return f"{' and '.join(parts)} to {outputs} fields"


def describe(layout: Layout, problem: Problem | None, *, seed: int | None) -> dict[str, Any]:
    """Return the entries every dataset has; unknown problems leave theirs null."""
    return {
        "problem": problems.describe_problem(problem) if problem else None,
        "samples": layout.samples,
        "input": layout.input.as_dict(),
        "output": layout.output.as_dict(),
        "distribution": problem.distribution if problem else None,
        "boundary": problem.boundary if problem else None,
        "solver": problem.solver if problem else None,
        "seed": seed,
    }


def layout_of(attributes: dict[str, Any]) -> Layout:
    """Return the arrays that a description speaks of."""
    sides = (Side.from_dict(attributes[side]) for side in SIDES)
    return Layout(attributes["samples"], *sides)


def description_digest(attributes: dict[str, Any]) -> str:
    """Return the digest of a dataset's description, the checksums of its fields included.

    That is of all attributes but `digest`, where it is stored, as JSON with sorted keys.
    """
    return content_digest(attributes, but="digest")


def read_description(path: Place) -> dict[str, Any]:
    """Return the attributes of a complete dataset, whose types and sizes are checked."""
    try:
        group = read_json_at(path / DESCRIPTION, require={"attributes": dict, "node_type": str})
    except UnreachableStorageError:
        raise
    except TwoscaleError as error:
        if not exists(path):
            text = f"{path} does not exist: make it with 'twoscale generate' or 'import'"
            raise TwoscaleError(text) from error
        if is_remainder(path):
            raise lost(path, DESCRIPTION) from error
        raise TwoscaleError(f"{path} is not a readable Zarr group: {error}") from error
    attributes: dict[str, Any] = group["attributes"]
    version, wrong = attributes.get("format_version"), ""
    if attributes.get("format") != FORMAT:
        wrong = (
            f"is not a twoscale dataset, or its {DESCRIPTION} is no longer that of one: make one "
            "with 'twoscale generate' or 'import'"
        )
    elif version != FORMAT_VERSION:
        wrong = (
            f"has dataset format {version}; this twoscale reads {FORMAT_VERSION}: generate or "
            "import it again"
        )
    elif attributes.get("complete") is not True:
        wrong = "is not complete: run the command that makes it again, or wait for it"
    elif attributes.get("digest") != description_digest(attributes):
        wrong = (
            "is damaged: its description has changed since it was written; generate or import it "
            "again"
        )
    elif entries := _wrong_entries(attributes):
        wrong = f"is damaged: its description lacks a proper {', '.join(entries)}"
    if wrong:
        raise TwoscaleError(f"{path} {wrong}")
    return attributes


def _wrong_entries(attributes: dict[str, Any]) -> list[str]:
    """Return the names of entries that are missing, of a wrong type or at odds with others."""
    proper = {
        name: name in attributes and (attributes[name] is None or is_a(attributes[name], kind))
        for name, kind in _OPTIONAL.items()
    }
    proper["problem"] = "problem" in attributes and _is_problem(attributes["problem"])
    proper |= {side: _is_side(attributes.get(side)) for side in SIDES}
    proper["samples"] = is_a(attributes.get("samples"), int) and attributes["samples"] > 0
    if wrong := [name for name, is_proper in proper.items() if not is_proper]:
        return wrong
    try:
        layout = layout_of(attributes)
    except TwoscaleError:
        return ["output"]
    for name in ("chunk", "shard"):
        if not is_a(attributes.get(name), int) or attributes[name] != getattr(layout, name):
            return [name]
    # As many as the file has room for: a lie about the samples ends here.
    counts = {name: prod(one.grid) for name, one in layout.chunkings.items()}
    sums = attributes.get("checksums")
    if not isinstance(sums, dict) or set(sums) != set(counts):
        return ["checksums"]
    sound = all(_are_checksums(sums[name], count) for name, count in counts.items())
    return [] if sound else ["checksums"]


def _is_side(stored: Any) -> bool:
    try:
        Side.from_dict(stored)
    except TwoscaleError:
        return False
    return True


def _is_problem(stored: Any) -> bool:
    if not isinstance(stored, dict):
        return stored is None
    kinds = {name: type(value) for name, value in stored.items()}
    return kinds == {"name": str, "parameters": dict}


def _are_checksums(sums: Any, count: int) -> bool:
    """Say whether there is one text for each chunk of an array."""
    return (
        isinstance(sums, list) and len(sums) == count and all(isinstance(one, str) for one in sums)
    )


def is_dataset_file(name: str) -> bool:
    """Say whether a file of this name, relative to the dataset, is one that we write into it."""
    first, _, rest = name.partition("/")
    return name == DESCRIPTION or (
        first in ARRAYS and (rest == DESCRIPTION or rest.startswith(f"{_SHARDS}/"))
    )


def is_dataset(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, whatever its state."""
    return _format_of(path) == FORMAT


def may_be_dataset(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, is too damaged to tell, or is left of one."""
    if not (path / DESCRIPTION).exists():
        return is_remainder(path)
    return _format_of(path) in (FORMAT, _DAMAGED) or _has_our_arrays(path)


def _format_of(path: Path) -> Any:
    """Return the format that a description names, or that it is damaged."""
    try:
        attributes = read_json(path / DESCRIPTION).get("attributes", {})
    except TwoscaleError:
        return _DAMAGED
    return attributes.get("format") if isinstance(attributes, dict) else _DAMAGED


def is_remainder(place: Place) -> bool:
    """Say whether a dataset without its description is at a place, or some of its files.

    A Zarr array of somebody else is none, even if it has the name of one of ours.
    """
    if isinstance(place, URL):  # where only datasets are read
        names = object_names(place)
        return DESCRIPTION not in names and any(is_dataset_file(name) for name in names)
    if not place.is_dir() or os.path.lexists(place / DESCRIPTION):
        return False
    names, inside = _contents(place)
    return _has_our_arrays(place) or (set(names) <= set(ARRAYS) and inside == {_SHARDS})


def is_replaceable(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, and holds nothing but what we write."""
    names, inside = _contents(path) if is_dataset(path) else ([], set())
    return (
        DESCRIPTION in names
        and set(names) <= {DESCRIPTION, *ARRAYS}
        and inside <= {DESCRIPTION, _SHARDS}
    )


def _contents(path: Path) -> tuple[list[str], set[str]]:
    """Return the names in a folder, and those inside of its folders."""
    names = [entry.name for entry in path.iterdir()]
    return names, {entry.name for name in names for entry in (path / name).glob("*")}


def _has_our_arrays(path: Path) -> bool:
    """Say whether a folder has an array of a dataset, by how it is cut and compressed."""
    for name in ARRAYS:
        try:
            if is_our_array(read_json(path / name / DESCRIPTION)):
                return True
        except TwoscaleError:
            continue
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
