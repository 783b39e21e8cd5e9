"""People's own fields and parameters, from the files they have."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from twoscale.data.description import Layout, Side, describe
from twoscale.data.readers import Chosen, open_arrays
from twoscale.data.readers.base import NO_COMPLEX, reading
from twoscale.data.store import Dataset
from twoscale.data.writer import writing
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid, Space
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.memory import require_memory
from twoscale.runtime.progress import Progress

Keys = str | Sequence[str] | None
_SHAPES = (
    "(samples, height, width), (samples, channels, height, width), or (samples, length) for fields "
    "on a line"
)
_FEW = 4  # a last axis of at most this many nodes may be one of channels


def import_fields(
    files: Sequence[str | Path],
    path: str | Path,
    *,
    inputs: Keys = None,
    outputs: Keys = None,
    parameters: Keys = None,
    periodic: tuple[bool, bool] | None = None,
    problem: Problem | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Write a dataset from one npz, HDF5 or MAT file of several arrays, or from npy files.

    Parameters
    ----------
    inputs, outputs
        Names of arrays (samples, height, width), (samples, channels, height, width) or (samples,
        length). Several are stacked as channels and named by their keys. Inputs and outputs may
        have different grids. The names of npy files are their arrays' names; two npy files without
        any names are input and output.
    parameters
        Names of arrays (samples,) or (samples, parameters): scalars beside or instead of inputs.
    periodic
        Whether rows and columns wrap; by default as in the problem, or not at all.
    problem
        The equation that the pairs solve, if it is a known one.
    """
    if periodic is None:
        periodic = problem.periodic if problem else (False, False)
    keys = {"input": _listed(inputs), "output": _listed(outputs), "parameters": _listed(parameters)}
    places = [Path(file) for file in files]
    with open_arrays(places, keys) as chosen:
        stacks = {
            role: _Stack(role, [_Array(role, one, len(some) > 1) for one in some])
            for role, some in chosen.items()
            if some
        }
        layout = _layout(stacks, periodic)
        if problem is not None:
            problem.check_spaces(layout.input.space, layout.output.space)
        require_memory(
            f"reading {places[0]} in parts",
            sum(stack.part_bytes(layout.chunk) for stack in stacks.values()),
            "its fields are too large",
        )
        description = describe(layout, problem, seed=None)
        with writing(path, description, overwrite=overwrite) as writer:
            for part in slices(layout.samples, writer.chunk):
                writer.write(part.start, {role: one.read(part) for role, one in stacks.items()})
                if progress:
                    progress("samples", part.stop, layout.samples, "")
            return writer.finish()


def channels_last_hint(shape: Sequence[int]) -> str | None:
    """Return what to say of fields (samples, channels, height, width) that look channels-last."""
    if len(shape) != 4 or shape[3] > _FEW or min(shape[1:3]) <= _FEW:
        return None
    _, first, second, last = shape
    return (
        f"{first} channels on {second}x{last} nodes: if the last axis is that of the channels, "
        "move it forward (numpy.moveaxis(fields, -1, 1)) and import again"
    )


def _listed(keys: Keys) -> list[str]:
    listed = [keys] if isinstance(keys, str) else list(keys or ())
    twice = sorted({key for key in listed if listed.count(key) > 1})
    if twice:
        raise TwoscaleError(f"an array is one channel only, got '{twice[0]}' twice")
    return listed


class _Array:
    """An array read in slices of samples as (batch, channels, height, width), checked meanwhile."""

    def __init__(self, role: str, chosen: Chosen, one_of_several: bool) -> None:
        self.name, self.array, self.file = chosen
        self.rank = len(self.array.shape)
        self.subject = "the parameters" if role == "parameters" else f"the {role} fields"
        if one_of_several:
            self.subject += f" '{self.name}'"
        self._refuse_unusual(role)
        self.shape = self._four_axes(role)

    def _refuse_unusual(self, role: str) -> None:
        shape, dtype = tuple(self.array.shape), self.array.dtype
        if dtype.kind not in "fiub":
            advice = f": {NO_COMPLEX}" if dtype.kind == "c" else ""
            raise TwoscaleError(f"{self.subject} must be real numbers, got dtype {dtype}{advice}")
        if role == "parameters":
            if self.rank not in (1, 2) or not prod(shape):
                raise TwoscaleError(
                    f"{self.subject} must have shape (samples,) or (samples, parameters), got "
                    f"{shape}"
                )
            return
        advice = ""
        if self.rank == 1 and role == "input":
            advice = ": give scalars of each sample as parameters=..."
        elif self.rank == 5:
            advice = (
                ": of fields in three dimensions give slices, or the planes as channels of a field "
                "in two dimensions"
            )
        if self.rank not in (2, 3, 4) or not prod(shape):
            raise TwoscaleError(f"{self.subject} must have shape {_SHAPES}, got {shape}{advice}")

    def _four_axes(self, role: str) -> tuple[int, int, int, int]:
        samples, *sides = (int(side) for side in self.array.shape)
        if role == "parameters":
            return samples, prod(sides), 1, 1
        channels, height, width = (1,) * (3 - len(sides)) + tuple(sides)
        return samples, channels, height, width

    @property
    def channel_names(self) -> list[str] | None:
        """Return the names of the channels, by the array's key; None if it has none."""
        if self.name is None:
            return None
        name = self.name.encode(errors="replace").decode()  # JSON holds only text
        channels = self.shape[1]
        return [name] if channels == 1 else [f"{name}[{channel}]" for channel in range(channels)]

    def read(self, part: slice) -> np.ndarray:
        """Return some samples in single precision, (batch, channels, height, width)."""
        with reading(self.file):
            stored = np.asarray(self.array[part]).reshape(-1, *self.shape[1:])
        with np.errstate(over="ignore"):  # what is too large is told below
            values = stored.astype(np.float32, copy=False)
        finite = np.isfinite(values).all(axis=(1, 2, 3))
        if not finite.all():
            bad = int(finite.argmin())
            what = "values beyond the range of single precision (3.4e38)"
            if not np.isfinite(stored[bad]).all():
                what = "NaN or infinite values"
            raise TwoscaleError(
                f"{self.subject} contain {what}, first in sample {part.start + bad}"
            )
        return values


class _Stack:
    """The arrays of one role, one after the other along the channels."""

    def __init__(self, role: str, arrays: list[_Array]) -> None:
        self.arrays = arrays
        first = arrays[0]
        for other in arrays[1:]:
            if other.shape[0] != first.shape[0] or other.shape[2:] != first.shape[2:]:
                hints = [channels_last_hint(one.array.shape) for one in (first, other)]
                raise TwoscaleError(
                    f"arrays of one side must agree in samples and grid: '{first.name}' has shape "
                    f"{tuple(first.array.shape)}, '{other.name}' {tuple(other.array.shape)}"
                    + "".join(f"; {hint}" for hint in hints if hint)
                )
        self.samples, _, *sides = first.shape
        self.grid_shape = (sides[0], sides[1])
        self.channels = sum(array.shape[1] for array in arrays)
        self.rank = None if role == "parameters" else first.rank if len(arrays) == 1 else 4

    @property
    def names(self) -> list[str] | None:
        """Return the names of all channels, where all have one."""
        found: list[str] = []
        for array in self.arrays:
            if array.channel_names is None:
                return None
            found += array.channel_names
        return found

    def part_bytes(self, samples: int) -> int:
        """Return the memory that some samples take as they are stored and as they are written."""
        return sum(
            min(samples, self.samples)
            * prod(array.shape[1:])
            * (array.array.dtype.itemsize + np.dtype(np.float32).itemsize)
            for array in self.arrays
        )

    def read(self, part: slice) -> np.ndarray:
        """Return some samples, (batch, channels, height, width)."""
        parts = [array.read(part) for array in self.arrays]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _layout(stacks: dict[str, _Stack], periodic: tuple[bool, bool]) -> Layout:
    """Return what the stacked arrays are together, or say where they disagree."""
    counts = {role: stack.samples for role, stack in stacks.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{role}: {count}" for role, count in counts.items())
        raise TwoscaleError(
            f"the numbers of samples must agree, got {told}; the first axis is that of the samples"
        )
    given, scalars, output = (stacks.get(role) for role in ("input", "parameters", "output"))
    first = given or scalars
    assert first is not None
    assert output is not None
    known = [stack for stack in (given, scalars) if stack]
    space = Space(
        sum(stack.channels for stack in known),
        _grid(first, periodic),
        scalars.channels if scalars else 0,
        _all_names(known),
    )
    found = Space(output.channels, _grid(output, periodic), names=_all_names([output]))
    return Layout(output.samples, Side(space, first.rank), Side(found, output.rank))


def _grid(stack: _Stack, periodic: tuple[bool, bool]) -> Grid:
    """Return the grid of a stack; an axis of one node has nothing to wrap."""
    height, width = stack.grid_shape
    return Grid(height, width, (periodic[0] and height > 1, periodic[1] and width > 1))


def _all_names(stacks: list[_Stack]) -> tuple[str, ...] | None:
    found: list[str] = []
    for stack in stacks:
        if stack.names is None:
            return None
        found += stack.names
    return tuple(found)
