"""Arrays of files as fields: read in slices of samples, as (batch, channels, height, width)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from twoscale.data.choosing import ChosenArray
from twoscale.data.readers.archive import StoredArray, reading
from twoscale.data.readers.npz import StreamedArray
from twoscale.data.reading import Reading
from twoscale.errors import TwoscaleError
from twoscale.runtime.memory import require_memory

_INSIDE = "ntchw"
"""The order in which axes are brought; those that an array lacks have length one."""


class FieldArray:
    """One array of a file, with the order of its axes and the part of it that is wanted.

    `order` is a word of letters as in `axes.py`; `asked` says which part of the axes and times.
    """

    def __init__(
        self, chosen: ChosenArray, array: StoredArray, order: str, asked: Reading, file: Path
    ) -> None:
        self.chosen, self.order, self.file = chosen, order, file
        self.array = _in_any_order(array, order, chosen.label, file)
        self.lengths = dict(zip(order, (int(side) for side in array.shape), strict=True))
        self.steps: list[int] | None = None  # the wanted times
        if "t" in order:
            count = self.lengths["t"]
            label = chosen.label
            self.steps = [0] if count == 1 else asked.times_of(chosen.role, label, count)
        self.ranges = {axis: self._range(axis, asked) for axis in order if axis != "t"}
        sides = {axis: len(part) for axis, part in self.ranges.items()}
        channels = sides.get("c", 1) * len(self.steps or [0])
        self.shape = (sides["n"], channels, sides.get("h", 1), sides.get("w", 1))
        with_channels = "c" in order or channels > 1
        self.rank = 4 if with_channels else 3 if "h" in order else 2

    def _range(self, axis: str, asked: Reading) -> range:
        selects = axis == "n" or self.chosen.is_field
        part = asked.ranges.get(axis, slice(None)) if selects else slice(None)
        wanted = range(self.lengths[axis])[part]
        if not wanted:
            length = f"whose axis '{axis}' has length {self.lengths[axis]}"
            raise TwoscaleError(f"'select' leaves nothing of '{self.chosen.label}', {length}")
        return wanted

    @property
    def channel_names(self) -> list[str] | None:
        """Return the names of the channels, by the array's key and times; None without a key."""
        if self.chosen.name is None:
            return None
        name = self.chosen.name.encode(errors="replace").decode()  # JSON holds only text
        channels = self.ranges.get("c", range(1))
        inner = [f"{name}[{channel}]" for channel in channels]
        if len(channels) == 1 and (self.order == "nc" or self.lengths.get("c", 1) == 1):
            inner = [name]
        if self.steps is None or self.lengths["t"] == 1:
            return inner
        return [f"{one}@{step}" for step in self.steps for one in inner]

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
            sample = self.ranges["n"][part.start + bad]
            where = f"first in sample {sample}"
            raise TwoscaleError(f"{self.chosen.subject} contain {what}, {where}: {advice}")
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


class FieldStack:
    """The arrays of one role, one after the other along the channels.

    `shape` is (samples, channels, height, width); `names` are those of all channels, if all have
    one, and `rank` the number of axes that users see, None of parameters.
    """

    def __init__(self, role: str, arrays: Sequence[FieldArray]) -> None:
        self.arrays = arrays
        first = arrays[0]
        for other in arrays[1:]:
            if other.shape[0] != first.shape[0] or other.shape[2:] != first.shape[2:]:
                sizes = [f"'{one.chosen.name}' has {one.array.shape}" for one in (first, other)]
                must = "arrays of one side must agree in samples and grid"
                raise TwoscaleError(f"{must}: {', '.join(sizes)}")
        self.samples, _, *sides = first.shape
        self.channels = sum(array.shape[1] for array in arrays)
        self.shape = (self.samples, self.channels, *sides)
        self.rank = None if role == "parameters" else first.rank if len(arrays) == 1 else 4

    @property
    def names(self) -> list[str] | None:
        names = [array.channel_names for array in self.arrays]
        return None if None in names else [one for some in names for one in some or ()]

    def part_bytes(self, samples: int) -> int:
        """Return the memory that some samples take as they are stored and as they are written."""
        return sum(array.part_bytes(samples) for array in self.arrays)

    def read(self, part: slice, *, finite: bool = True) -> np.ndarray:
        """Return some samples, (batch, channels, height, width)."""
        parts = [array.read(part, finite=finite) for array in self.arrays]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def scalars(self) -> np.ndarray:
        """Return all samples of parameters, (samples, parameters)."""
        return self.read(slice(0, self.samples))[:, :, 0, 0]
