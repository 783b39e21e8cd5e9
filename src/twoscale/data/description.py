"""What a dataset says about itself: spaces, ranks, problem, checksums; none of it is believed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from twoscale import problems
from twoscale.data.chunking import Chunking
from twoscale.data.parts import DESCRIPTION, FORMAT, is_remainder, lost
from twoscale.data.places import Place, exists, read_json_at
from twoscale.data.remote import UnreachableStorageError
from twoscale.domain.grid import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.samples import fits_rank, sample_shape
from twoscale.files import content_digest
from twoscale.files.reading import is_a
from twoscale.problems import Problem
from twoscale.runtime.memory import size_text

FORMAT_VERSION = 4
SIDES = ("input", "output")
_CHUNK_BYTES = 2**22
_SHARD_BYTES = 2**27
_LARGEST_SAMPLE = 2**31 - 2**20  # bytes: more than the compression of one chunk can take
_OPTIONAL = {"seed": int, "distribution": dict, "boundary": str, "solver": str}
"""Entries of a description that are of this type or null."""
_SIDE_ENTRIES = {"height": int, "width": int, "channels": int, "parameters": int, "periodic": list}


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
        if self.rank is None:
            return None
        return sample_shape(self.space, self.rank)

    def as_dict(self) -> dict[str, Any]:
        return self.space.as_dict() | {"rank": self.rank}

    @classmethod
    def from_dict(cls, stored: Any) -> Side:
        """Return the side of a description, or raise a TwoscaleError."""
        if not (
            isinstance(stored, dict)
            and set(stored) == {*_SIDE_ENTRIES, "names", "rank"}
            and all(is_a(stored[key], kind) for key, kind in _SIDE_ENTRIES.items())
            and len(stored["periodic"]) == 2
            and (stored["rank"] is None or is_a(stored["rank"], int))
            and _are_names(stored["names"])
        ):
            raise TwoscaleError("a side of a dataset has a space and a rank")
        return cls(Space.from_dict(stored), stored["rank"])


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
        found = {
            "input": self.input.sample_shape,
            "parameters": (count,) if count else None,
            "output": self.output.sample_shape,
        }
        return {name: shape for name, shape in found.items() if shape is not None}

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
            raise TwoscaleError(
                f"one sample takes {size_text(4 * self.largest)}, at most "
                f"{size_text(_LARGEST_SAMPLE)} can be stored: use fewer channels or a coarser grid"
            )

    def __str__(self) -> str:
        """Say what the pairs are, such as "16x16 fields" or "2 parameters to 3x8x8 fields"."""
        given, found = self.input.space, self.output.space
        if given.shape == found.shape and given.grid == found.grid and not given.parameters:
            return f"{found} fields"
        known = []
        if given.field_channels:
            known.append(f"{Space(given.field_channels, given.grid)} fields")
        if given.parameters:
            known.append(f"{given.parameters} parameter{'s' if given.parameters > 1 else ''}")
        return f"{' and '.join(known)} to {found} fields"


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
            raise TwoscaleError(
                f"{path} does not exist: make it with 'twoscale generate' or 'import'"
            ) from error
        if is_remainder(path):
            raise lost(path, DESCRIPTION) from error
        raise TwoscaleError(f"{path} is not a readable Zarr group: {error}") from error
    attributes: dict[str, Any] = group["attributes"]
    if attributes.get("format") != FORMAT:
        raise TwoscaleError(
            f"{path} is not a twoscale dataset, or its {DESCRIPTION} is no longer that of one: "
            "make one with 'twoscale generate' or 'import'"
        )
    if attributes.get("format_version") != FORMAT_VERSION:
        raise TwoscaleError(
            f"{path} has dataset format {attributes.get('format_version')}; this twoscale reads "
            f"{FORMAT_VERSION}: generate or import it again"
        )
    if attributes.get("complete") is not True:
        raise TwoscaleError(
            f"{path} is not complete: run the command that makes it again, or wait for it"
        )
    if attributes.get("digest") != description_digest(attributes):
        raise TwoscaleError(
            f"{path} is damaged: its description has changed since it was written; generate or "
            "import it again"
        )
    wrong = _wrong_entries(attributes)
    if wrong:
        raise TwoscaleError(f"{path} is damaged: its description lacks a proper {', '.join(wrong)}")
    return attributes


def _wrong_entries(attributes: dict[str, Any]) -> list[str]:
    """Return the names of entries that are missing, of a wrong type or at odds with others."""
    wrong = [key for key, kind in _OPTIONAL.items() if not _is_optional(attributes, key, kind)]
    if "problem" not in attributes or not _is_problem(attributes["problem"]):
        wrong.append("problem")
    wrong += [side for side in SIDES if not _is_side(attributes.get(side))]
    if not _is_count(attributes.get("samples")):
        wrong.append("samples")
    if wrong:
        return wrong
    try:
        layout = layout_of(attributes)
    except TwoscaleError:
        return ["output"]
    for name in ("chunk", "shard"):
        if not _is_count(attributes.get(name)) or attributes[name] != getattr(layout, name):
            return [name]
    # As many as the file has room for: a lie about the samples ends here.
    counts = {name: one.count for name, one in layout.chunkings.items()}
    return [] if _are_checksums(attributes.get("checksums"), counts) else ["checksums"]


def _are_names(stored: Any) -> bool:
    return stored is None or (is_a(stored, list) and all(is_a(name, str) for name in stored))


def _is_side(stored: Any) -> bool:
    try:
        Side.from_dict(stored)
    except TwoscaleError:
        return False
    return True


def _is_problem(stored: Any) -> bool:
    return stored is None or (
        is_a(stored, dict)
        and set(stored) == {"name", "parameters"}
        and is_a(stored["name"], str)
        and is_a(stored["parameters"], dict)
    )


def _is_count(value: Any) -> bool:
    return is_a(value, int) and value > 0


def _is_optional(attributes: dict[str, Any], key: str, kind: type) -> bool:
    return key in attributes and (attributes[key] is None or is_a(attributes[key], kind))


def _are_checksums(value: Any, counts: dict[str, int]) -> bool:
    """Say whether there is one text for each chunk of each array."""
    return (
        isinstance(value, dict)
        and set(value) == set(counts)
        and all(
            isinstance(sums, list)
            and len(sums) == counts[name]
            and all(isinstance(text, str) for text in sums)
            for name, sums in value.items()
        )
    )
