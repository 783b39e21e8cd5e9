"""Which arrays of a file are inputs, outputs and parameters: as asked, or where names tell."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from twoscale.data.readers.archive import Archive, Found
from twoscale.data.readers.base import listed, reading
from twoscale.data.readers.opening import NamedFiles
from twoscale.data.reading import Reading
from twoscale.errors import TwoscaleError, did_you_mean

ROLES = ("input", "output", "parameters")
_PAIRS = (
    ("input", "output"),
    ("inputs", "outputs"),
    ("a", "u"),
    ("x", "u"),
    ("x", "y"),
    ("k", "u"),
    ("f", "u"),
    ("nu", "tensor"),
    ("coeff", "sol"),
)
"""Names of an input and an output that leave no doubt, where only one of these pairs is there."""


class Chosen(NamedTuple):
    """An array of a role; `name` is None where the order of the files decides."""

    role: str
    name: str | None
    array: Found
    axes: tuple[str, ...] | None

    @property
    def label(self) -> str:
        """Return the array's name, or its role."""
        return self.name or self.role


class Choice:
    """The arrays of some files, chosen by role."""

    def __init__(self, paths: Sequence[Path], archive: Archive) -> None:
        self.paths = paths
        self.archive = archive

    def __str__(self) -> str:
        return str(self.paths[0]) if len(self.paths) == 1 else f"the set of {len(self.paths)} files"

    def arrays(self, asked: Reading, roles: Sequence[str]) -> list[Chosen]:
        """Return the arrays of some roles; inputs may be left out where there are parameters."""
        if not any(asked.keys.values()) and self._is_pair():
            return self._in_order(roles)
        keys: dict[str, tuple[str, ...]] = asked.keys
        if self.archive.single and "output" not in roles:  # whatever it is called
            keys = keys | {"input": tuple(self.archive.names())}
        if not any(keys.values()):
            keys = self._by_names(asked, roles)
        required = {"output"} if keys["parameters"] else {"input", "output"}
        for role in required & set(roles):
            if not keys[role]:
                raise self._undecided([role])
        return [self._find(role, key) for role in ROLES if role in roles for key in keys[role]]

    def _is_pair(self) -> bool:
        return isinstance(self.archive, NamedFiles) and self.archive.is_pair

    def _in_order(self, roles: Sequence[str]) -> list[Chosen]:
        """Return the arrays of two files: the first is the input, the second the output."""
        assert isinstance(self.archive, NamedFiles)
        found = []
        for role, one in zip(("input", "output"), self.archive.opened, strict=True):
            name = one.names()[0]
            array = one.array(name)
            assert array is not None
            if role in roles:
                found.append(Chosen(role, None, array, one.axes(name)))
        return found

    def _by_names(self, asked: Reading, roles: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the names of input and output, where they leave no doubt."""
        with self._reading():
            names = self.archive.names()
        fields = {name.lower(): name for name in names if self._is_field(name)}
        pairs = [pair for pair in _PAIRS if all(one in fields for one in pair)]
        if len(pairs) == 1:
            one, other = (fields[name] for name in pairs[0])
            return {"input": (one,), "output": (other,), "parameters": ()}
        if len(fields) == 1 and (asked.time or "output" not in roles):
            (name,) = fields.values()
            return {"input": (name,), "output": (name,), "parameters": ()}
        if not names:
            raise TwoscaleError(f"{self} holds no arrays: give another file, or another folder")
        if len(names) == 1 or len(fields) == 1:
            (name,) = fields.values() if fields else names
            shape = self._shape(name)
            raise TwoscaleError(
                f"{self} holds one array of fields, '{name}' {shape}: if it has an axis of time, "
                "say which times are inputs and outputs, such as 0/-1; if not, give the "
                "input's and the output's file, or a folder of both"
            )
        raise self._undecided([role for role in roles if role != "parameters"])

    def _undecided(self, roles: Sequence[str]) -> TwoscaleError:
        return TwoscaleError(
            f"name the arrays of {self} that are {' and '.join(roles)}: it holds {self._held()}"
        )

    def _is_field(self, name: str) -> bool:
        shape = self._shape(name)
        return shape is not None and len(shape) > 1

    def _shape(self, name: str) -> tuple[int, ...] | None:
        try:
            with self._reading():
                return self.archive.shape(name)
        except TwoscaleError:  # told when it is asked for
            return None

    def _held(self) -> str:
        with self._reading():
            names = self.archive.names()
        return listed(f"{name} {self._shape(name) or ''}".strip() for name in names)

    def _find(self, role: str, key: str) -> Chosen:
        with self._reading():
            array = self.archive.array(key)
            axes = None if array is None else self.archive.axes(key)
        if array is not None:
            return Chosen(role, key, array, axes)
        with self._reading():
            names = self.archive.names()
        inside = [name for name in names if key and name.endswith(f"/{key}")]
        hint = did_you_mean(inside[0] if inside else key, names)
        raise TwoscaleError(f"{self} has no array '{key}' ({role}){hint}: it holds {self._held()}")

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.paths[0])
