"""Arrays in other people's files: what every reader gives, and what readers share."""

from __future__ import annotations

import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from twoscale.errors import TwoscaleError
from twoscale.files.reading import parsing

_SHOWN = 20  # names of arrays in a sentence

Index = tuple[slice, ...]
"""One slice with a positive step for each axis."""

Axes = tuple[str, ...]
"""The names that a file gives to an array's axes."""


class StoredArray(Protocol):
    """An array in a file, of which parts can be read."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, index: Any, /) -> Any: ...


@dataclass(frozen=True)
class ArrayView:
    """A stored array seen in another way: `read` returns what an index asks for."""

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[Index], np.ndarray]

    def __getitem__(self, index: Index) -> np.ndarray:
        return self.read(tuple(index))


def reversed_axes(array: Any) -> ArrayView:
    """Return a stored array seen with its axes in reverse."""
    return ArrayView(array.shape[::-1], array.dtype, lambda index: np.asarray(array[index[::-1]]).T)


def repeated(array: StoredArray, samples: int) -> ArrayView:
    """Return an array that is the same for all samples, seen with an axis of samples in front."""

    def read(index: Index) -> np.ndarray:
        values = np.asarray(array[index[1:]])
        return np.broadcast_to(values, (len(range(*index[0].indices(samples))), *values.shape))

    return ArrayView((samples, *array.shape), array.dtype, read)


def merged_tail(array: StoredArray, merged: int) -> ArrayView:
    """Return an array whose last axes, the components of a tensor, are seen as one."""
    kept = len(array.shape) - merged
    size = math.prod(array.shape[kept:])

    def read(index: Index) -> np.ndarray:
        values = np.asarray(array[(*index[:-1], *[slice(None)] * merged)])
        return values.reshape(*values.shape[:kept], size)[..., index[-1]]

    return ArrayView((*array.shape[:kept], size), array.dtype, read)


@dataclass(frozen=True)
class Pieces:
    """One array in several pieces: files or groups that each hold one sample, or some.

    Each is opened when it is read. It is not an array itself: `stacked` and `joined` say which of
    the two is meant.
    """

    name: str
    openers: Sequence[Callable[[], AbstractContextManager[FoundArray | None]]]
    labels: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the first piece."""
        return self.shapes[0]

    def differing(self, *, but: int | None = None) -> int | None:
        """Return the first piece of another shape than the first one, the axis `but` left out."""
        kept = [
            shape if but is None else (*shape[:but], *shape[but + 1 :]) for shape in self.shapes
        ]
        return next((k for k, shape in enumerate(kept) if shape != kept[0]), None)

    def require_agreement(self, *, but: int | None = None) -> None:
        """Raise if the pieces cannot be put together."""
        other = self.differing(but=but)
        if other is not None:
            raise TwoscaleError(
                f"all pieces of '{self.name}' must have one shape: {self.labels[0]} has "
                f"{self.shapes[0]}, {self.labels[other]} has {self.shapes[other]}; leave out or "
                "mend the ones that differ"
            )

    def stacked(self) -> ArrayView:
        """Return the pieces as samples, along a new first axis."""
        self.require_agreement()
        shape = (len(self.openers), *self.shape)

        def read(index: Index) -> np.ndarray:
            pieces = range(*index[0].indices(shape[0]))
            return np.stack([self._part(piece, index[1:]) for piece in pieces])

        return ArrayView(shape, self.dtype, read)

    def joined(self, axis: int) -> ArrayView:
        """Return the pieces one after the other along the axis of their samples."""
        self.require_agreement(but=axis)
        ends = np.cumsum([shape[axis] for shape in self.shapes])
        shape = (*self.shape[:axis], int(ends[-1]), *self.shape[axis + 1 :])

        def read(index: Index) -> np.ndarray:
            wanted = np.arange(*index[axis].indices(shape[axis]))
            parts = []
            for piece, end in enumerate(ends):
                start = end - self.shapes[piece][axis]
                inside = wanted[(wanted >= start) & (wanted < end)] - start
                if len(inside):
                    part = slice(int(inside[0]), int(inside[-1]) + 1, index[axis].step or 1)
                    parts.append(self._part(piece, (*index[:axis], part, *index[axis + 1 :])))
            return np.concatenate(parts, axis=axis)

        return ArrayView(shape, self.dtype, read)

    def _part(self, piece: int, index: Index) -> np.ndarray:
        with self.openers[piece]() as found:
            assert found is not None  # it was there when the shapes were read
            array: Any = found.array
            return np.array(array[index])


class FoundArray(NamedTuple):
    """An array of a file, or pieces of one, and the names that the file gives to its axes."""

    array: StoredArray | Pieces
    axes: Axes | None = None


class Archive(ABC):
    """A file or folder of arrays, opened for reading."""

    single = False
    """Whether it holds one array, which is named by the file."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the arrays, or of the first ones of very many."""

    @abstractmethod
    def find(self, name: str) -> FoundArray | None:
        """Return one of the arrays; None if there is none of this name."""

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of an array without reading it; None if there is none."""
        found = self.find(name)
        return None if found is None else tuple(found.array.shape)

    def periodic(self) -> tuple[bool, bool] | None:
        """Return which axes of the fields wrap, if the file says so."""
        return None

    def pair(self) -> list[FoundArray] | None:
        """Return an input and an output, if the order of files says which is it."""
        return None


class ArrayArchive(Archive):
    """Arrays by name, each of which has at least a shape.

    `opened` returns what is read of one that is asked for, by its name, or raises; `axes` are the
    names of axes by the arrays' names, and `names` those of arrays that users choose from.
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        *,
        single: bool = False,
        names: Sequence[str] | None = None,
        axes: Mapping[str, Axes | None] | None = None,
        opened: Callable[[str, Any], StoredArray] = lambda name, array: array,
    ) -> None:
        self.single = single
        self._arrays = arrays
        self._names = list(arrays if names is None else names)
        self._axes = axes or {}
        self._opened = opened

    def names(self) -> list[str]:
        return self._names

    def find(self, name: str) -> FoundArray | None:
        if name not in self._arrays:
            return None
        return FoundArray(self._opened(name, self._arrays[name]), self._axes.get(name))

    def shape(self, name: str) -> tuple[int, ...] | None:
        return tuple(self._arrays[name].shape) if name in self._arrays else None


def reading(file: Path) -> AbstractContextManager[None]:
    """Turn whatever a library raises on a file's bytes into one sentence."""
    return parsing(file, "what its name says")


@contextmanager
def quietly() -> Iterator[None]:
    """Keep what libraries warn of to ourselves: they speak of files that users did not write."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_exactly(stream: Any, size: int) -> bytes:
    """Return the next bytes of a stream; raise if it has fewer."""
    content = stream.read(size)
    if len(content) != size:
        raise ValueError("it ends too early")
    return bytes(content)


def read_values(stream: Any, size: int, *, step: int = 2**20) -> np.ndarray:
    """Return the next bytes of a stream as an array, of which a few are unpacked at once."""
    values = np.empty(size, np.uint8)
    for start in range(0, size, step):
        piece = values[start : start + step]
        piece[:] = np.frombuffer(read_exactly(stream, len(piece)), np.uint8)
    return values


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence, the first of many."""
    shown = list(names)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) or "no arrays") + more


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts names by the numbers in them.

    >>> sorted(["s10", "s9", "a"], key=natural)
    ['a', 's9', 's10']
    """
    parts = re.split(r"(\d+)", name)
    return [(1, int(one), "") if one.isdecimal() else (0, 0, one) for one in parts]
