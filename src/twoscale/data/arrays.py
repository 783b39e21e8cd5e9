"""Arrays of files as fields: read in slices of samples, as (batch, channels, height, width)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.choosing import Chosen
from twoscale.data.readers.base import StoredArray, reading
from twoscale.data.readers.npz import StreamedArray
from twoscale.data.sections import Times
from twoscale.errors import TwoscaleError
from twoscale.fields.arrays import NO_COMPLEX
from twoscale.runtime.memory import require_memory

_INSIDE = "ntchw"
"""The order in which axes are brought; those that an array lacks have length one."""


class FieldArray:
    """One array of a file, with the order of its axes and the part of it that is wanted.

    `order` is a word of letters as in `axes.py`; `select` has slices by letter.
    """

    def __init__(
        self,
        chosen: Chosen,
        array: StoredArray,
        order: str,
        *,
        select: dict[str, slice],
        times: Times | None,
        file: Path,
    ) -> None:
        self.role, self.name, self.order, self.file = chosen.role, chosen.name, order, file
        self.label = chosen.label
        self.array = _in_any_order(array, order, chosen.label, file)
        lengths = dict(zip(order, (int(side) for side in array.shape), strict=True))
        self.steps = self._times(times, lengths.pop("t", None))
        self.ranges = {axis: self._range(axis, lengths[axis], select) for axis in lengths}
        sides = {axis: len(part) for axis, part in self.ranges.items()}
        channels = sides.get("c", 1) * len(self.steps or [0])
        self.shape = (sides["n"], channels, sides.get("h", 1), sides.get("w", 1))
        with_channels = "c" in order or channels > 1
        self.rank = 4 if with_channels else 3 if "h" in order else 2

    def _times(self, times: Times | None, steps: int | None) -> list[int] | None:
        """Return the wanted times of an array with `steps` of them; None if it has no such axis."""
        if steps is None or (times is None and steps == 1):
            return None if steps is None else [0]
        if times is None:
            raise TwoscaleError(
                f"'{self.label}' has {steps} times: say which are inputs and which are outputs, "
                f"such as 0/-1 (from the first to the last) or 0:{steps // 2}/"
                f"{steps // 2}:{steps} (halves, as channels)"
            )
        return [0] if steps == 1 else times.of(self.role, self.label, steps)

    def _range(self, axis: str, length: int, select: dict[str, slice]) -> range:
        found = range(length)[select.get(axis, slice(None))]
        if not found:
            raise TwoscaleError(
                f"'select' leaves nothing of '{self.label}', whose axis '{axis}' has length "
                f"{length}"
            )
        return found

    @property
    def subject(self) -> str:
        what = "the parameters" if self.role == "parameters" else f"the {self.role} fields"
        return what if self.name is None else f"{what} '{self.name}'"

    @property
    def channel_names(self) -> list[str] | None:
        """Return the names of the channels, by the array's key and times; None without a key."""
        if self.name is None:
            return None
        name = self.name.encode(errors="replace").decode()  # JSON holds only text
        channels = self.ranges.get("c", range(1))
        inner = [f"{name}[{channel}]" for channel in channels]
        if len(channels) == 1 and (self.order == "nc" or self._length("c") == 1):
            inner = [name]
        if self.steps is None or self._length("t") == 1:
            return inner
        return [f"{one}@{step}" for step in self.steps for one in inner]

    def _length(self, axis: str) -> int:
        """Return the length of an axis in the file; 1 if there is no such axis."""
        return int(self.array.shape[self.order.index(axis)]) if axis in self.order else 1

    @property
    def stored_samples(self) -> int:
        """Return the number of samples in the file, selected or not."""
        return self._length("n")

    def part_bytes(self, samples: int) -> int:
        """Return the memory that some samples take as they are stored and as they are written."""
        count = min(samples, self.shape[0]) * prod(self.shape[1:])
        return count * (self.array.dtype.itemsize + np.dtype(np.float32).itemsize)

    def read(self, part: slice, *, finite: bool = True) -> np.ndarray:
        """Return some samples in single precision, (batch, channels, height, width).

        `finite`: raise if there are values that are not.
        """
        with reading(self.file):
            stored = self._stored(part)
        with np.errstate(over="ignore"):  # what is too large is told below
            values = stored.astype(np.float32, copy=False)
        good = np.isfinite(values).all(axis=(1, 2, 3))
        if finite and not good.all():
            bad = int(good.argmin())
            what = "values beyond the range of single precision (3.4e38)"
            advice = "scale them"
            if not np.isfinite(stored[bad]).all():
                what = "NaN or infinite values"
                advice = "repair such samples, or leave them out"
            place = self.ranges["n"][part.start + bad]
            raise TwoscaleError(f"{self.subject} contain {what}, first in sample {place}: {advice}")
        return values

    def _stored(self, part: slice) -> np.ndarray:
        """Return some samples as they are stored, (batch, channels, height, width)."""
        wanted = dict(self.ranges, n=self.ranges["n"][part])
        if self.steps is not None:
            wanted["t"] = range(min(self.steps), max(self.steps) + 1)
        index = tuple(
            slice(wanted[axis].start, wanted[axis][-1] + 1, wanted[axis].step)
            for axis in self.order
        )
        values = np.asarray(self.array[index])
        if self.steps is not None:
            places = [step - wanted["t"].start for step in self.steps]
            values = values.take(places, axis=self.order.index("t"))
        present = [self.order.index(axis) for axis in _INSIDE if axis in self.order]
        return values.transpose(present).reshape(-1, *self.shape[1:])


def _in_any_order(array: StoredArray, order: str, label: str, file: Path) -> StoredArray:
    """Return an array that can be read along its axis of samples, which a stream has first."""
    if not isinstance(array, StreamedArray) or order[0] == "n":
        return array
    needed = prod(array.shape) * array.dtype.itemsize
    advice = "save it with the samples first, or as HDF5, which are read in parts"
    require_memory(f"'{label}' of {file}", needed, advice)
    with reading(file):
        return array.whole()


class Stack:
    """The arrays of one role, one after the other along the channels."""

    def __init__(self, role: str, arrays: Sequence[FieldArray]) -> None:
        self.arrays = arrays
        first = arrays[0]
        for other in arrays[1:]:
            if other.shape[0] != first.shape[0] or other.shape[2:] != first.shape[2:]:
                raise TwoscaleError(
                    f"arrays of one side must agree in samples and grid: '{first.name}' has shape "
                    f"{tuple(first.array.shape)}, '{other.name}' {tuple(other.array.shape)}"
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
        return sum(array.part_bytes(samples) for array in self.arrays)

    def read(self, part: slice, *, finite: bool = True) -> np.ndarray:
        """Return some samples, (batch, channels, height, width)."""
        parts = [array.read(part, finite=finite) for array in self.arrays]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


class StackView:
    """A stack as an array (samples, channels, height, width) that is read as it is sliced."""

    ndim = 4

    def __init__(self, stack: Stack, opened: AbstractContextManager[Any]) -> None:
        self.stack = stack
        self.opened = opened  # closes the files when it goes
        self.shape = (stack.samples, stack.channels, *stack.grid_shape)

    def __len__(self) -> int:
        return self.stack.samples

    def __getitem__(self, part: slice) -> np.ndarray:
        return self.stack.read(part)


def refuse_unusual(chosen: Chosen, *, pieces: bool) -> None:
    """Raise if an array holds no real numbers, or nothing."""
    shape, dtype = tuple(chosen.array.shape), chosen.array.dtype
    what = "the parameters" if chosen.role == "parameters" else f"the {chosen.role} fields"
    subject = what if chosen.name is None else f"{what} '{chosen.name}'"
    if dtype.kind not in "fiub":
        advice = f": {NO_COMPLEX}" if dtype.kind == "c" else ": give an array of numbers"
        raise TwoscaleError(f"{subject} must be real numbers, got dtype {dtype}{advice}")
    if not prod(shape):
        raise TwoscaleError(f"{subject} are without values: the shape is {shape}")
    rank = len(shape) + pieces
    if chosen.role == "parameters" and rank not in (1, 2) and prod(shape[1:]) > 1:
        raise TwoscaleError(
            f"{subject} must have shape (samples,) or (samples, parameters), got {shape}"
        )
