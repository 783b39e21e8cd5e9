"""Which arrays of a file are inputs, outputs and parameters: as asked, or where names tell."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from twoscale.data.readers.archive import Archive, Axes, Pieces, StoredArray, listed, reading
from twoscale.data.reading import Reading
from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.fields.arrays import NO_COMPLEX

ROLES = ("input", "output", "parameters")
_PAIRS = (
    *(("input", "output"), ("inputs", "outputs"), ("a", "u"), ("x", "u"), ("x", "y")),
    *(("k", "u"), ("f", "u"), ("nu", "tensor"), ("coeff", "sol")),
)
"""Names of an input and an output that leave no doubt, where only one of these pairs is there."""


class ChosenArray(NamedTuple):
    """An array of a role; `name` is None where the order of the files decides."""

    role: str
    name: str | None
    array: StoredArray | Pieces
    axes: Axes | None

    @property
    def label(self) -> str:
        """Return the array's name, or its role."""
        return self.name or self.role

    @property
    def is_field(self) -> bool:
        return self.role != "parameters"

    @property
    def subject(self) -> str:
        """Return what the array is in a sentence."""
        what = f"the {self.role} fields" if self.is_field else "the parameters"
        return what if self.name is None else f"{what} '{self.name}'"

    def refuse_unusual(self) -> None:
        """Raise if the array holds no real numbers, or nothing."""
        shape, dtype = tuple(self.array.shape), self.array.dtype
        if dtype.kind not in "fiub":
            advice = f": {NO_COMPLEX}" if dtype.kind == "c" else ": give an array of numbers"
            raise TwoscaleError(f"{self.subject} must be real numbers, got dtype {dtype}{advice}")
        if not prod(shape):
            raise TwoscaleError(f"{self.subject} are without values: the shape is {shape}")
        rank = len(shape) + isinstance(self.array, Pieces)
        if not self.is_field and rank not in (1, 2) and prod(shape[1:]) > 1:
            raise TwoscaleError(
                f"{self.subject} must have shape (samples,) or (samples, parameters), got {shape}"
            )


def choose_arrays(
    paths: Sequence[Path], archive: Archive, asked: Reading, roles: Sequence[str]
) -> list[ChosenArray]:
    """Return the arrays of some roles; inputs may be left out where there are parameters."""
    with reading(paths[0]):
        chosen = _Choice(paths, archive).arrays(asked, roles)
    for one in chosen:
        one.refuse_unusual()
    return chosen


class _Choice:
    """The arrays of some files, chosen by role."""

    def __init__(self, paths: Sequence[Path], archive: Archive) -> None:
        self.archive = archive
        self.subject = str(paths[0]) if len(paths) == 1 else f"the set of {len(paths)} files"

    def arrays(self, asked: Reading, roles: Sequence[str]) -> list[ChosenArray]:
        keys: dict[str, tuple[str, ...]] = asked.keys
        if not any(keys.values()) and (pair := self.archive.pair()):
            both = zip(("input", "output"), pair, strict=True)
            return [ChosenArray(role, None, *one) for role, one in both if role in roles]
        if self.archive.single and "output" not in roles:  # whatever it is called
            keys = keys | {"input": tuple(self.archive.names())}
        if not any(keys.values()):
            keys = self._by_names(asked, roles)
        required = {"output"} if keys["parameters"] else {"input", "output"}
        for role in required & set(roles):
            if not keys[role]:
                raise self._undecided([role])
        return [self._array(role, key) for role in ROLES if role in roles for key in keys[role]]

    def _by_names(self, asked: Reading, roles: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the names of input and output, where they leave no doubt."""
        names = self.archive.names()
        fields = {name.lower(): name for name in names if len(self._shape(name) or ()) > 1}
        pairs = [pair for pair in _PAIRS if all(one in fields for one in pair)]
        if len(pairs) == 1:
            one, other = (fields[name] for name in pairs[0])
            return {"input": (one,), "output": (other,), "parameters": ()}
        if len(fields) == 1 and (asked.time or "output" not in roles):
            (name,) = fields.values()
            return {"input": (name,), "output": (name,), "parameters": ()}
        if not names:
            text = f"{self.subject} holds no arrays: give another file, or another folder"
            raise TwoscaleError(text)
        if len(names) == 1 or len(fields) == 1:
            (name,) = fields.values() if fields else names
            raise TwoscaleError(
                f"{self.subject} holds one array of fields, '{name}' {self._shape(name)}: if it "
                "has an axis of time, say which times are inputs and outputs, such as 0/-1; if "
                "not, give the input's and the output's file, or a folder of both"
            )
        raise self._undecided([role for role in roles if role != "parameters"])

    def _undecided(self, roles: Sequence[str]) -> TwoscaleError:
        wanted = " and ".join(roles)
        return TwoscaleError(f"name the arrays of {self.subject} that are {wanted}: {self._told()}")

    def _shape(self, name: str) -> tuple[int, ...] | None:
        try:
            with reading(Path(name)):
                return self.archive.shape(name)
        except TwoscaleError:  # told when it is asked for
            return None

    def _told(self) -> str:
        names = self.archive.names()
        return "it holds " + listed(f"{name} {self._shape(name) or ''}".strip() for name in names)

    def _array(self, role: str, key: str) -> ChosenArray:
        found = self.archive.find(key)
        if found is not None:
            return ChosenArray(role, key, *found)
        names = self.archive.names()
        inside = [name for name in names if key and name.endswith(f"/{key}")]
        hint = did_you_mean(inside[0] if inside else key, names)
        raise TwoscaleError(f"{self.subject} has no array '{key}' ({role}){hint}: {self._told()}")
