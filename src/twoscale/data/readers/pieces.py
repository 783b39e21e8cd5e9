"""Stored arrays seen in another way: reversed, repeated, or made up of several pieces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from twoscale.data.readers.base import Index, StoredArray
from twoscale.errors import TwoscaleError

Opener = Callable[[], AbstractContextManager[StoredArray]]


class ReversedArray:
    """A stored array seen with its axes in reverse, read part by part."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape: tuple[int, ...] = array.shape[::-1]

    def __getitem__(self, index: Index) -> np.ndarray:
        return np.asarray(self.array[tuple(index[::-1])]).T


class RepeatedArray:
    """A stored array that is the same for all samples, seen with an axis of samples in front."""

    def __init__(self, array: StoredArray, samples: int) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = (samples, *array.shape)

    def __getitem__(self, index: Index) -> np.ndarray:
        count = len(range(*index[0].indices(self.shape[0])))
        values = np.asarray(self.array[tuple(index[1:])])
        return np.broadcast_to(values, (count, *values.shape))


class MergedTail:
    """A stored array whose last axes, the components of a tensor, are seen as one."""

    def __init__(self, array: StoredArray, merged: int) -> None:
        self.array = array
        self.dtype = array.dtype
        self.kept = len(array.shape) - merged
        self.shape = (*array.shape[: self.kept], math.prod(array.shape[self.kept :]))

    def __getitem__(self, index: Index) -> np.ndarray:
        whole = (slice(None),) * (len(self.array.shape) - self.kept)
        values = np.asarray(self.array[(*index[:-1], *whole)])
        flat = values.reshape(*values.shape[: self.kept], self.shape[-1])
        return flat[..., index[-1]]


class Pieces:
    """One array in several pieces: files or groups that each hold one sample, or some.

    It is not an array itself: `stacked` and `joined` say which of the two is meant.
    """

    def __init__(
        self,
        name: str,
        openers: Sequence[Opener],
        labels: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
        dtype: np.dtype,
    ) -> None:
        self.name = name
        self.openers = openers
        self.labels = labels
        self.shapes = shapes
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the first piece."""
        return self.shapes[0]

    def agree(self, *, but: int | None = None) -> bool:
        """Say whether all pieces have one shape, the axis `but` left out."""
        kept = {shape if but is None else _without(shape, but) for shape in self.shapes}
        return len(kept) == 1

    def require_agreement(self, *, but: int | None = None) -> None:
        """Raise if the pieces cannot be put together."""
        first = self.shapes[0] if but is None else _without(self.shapes[0], but)
        for label, shape in zip(self.labels, self.shapes, strict=True):
            if (shape if but is None else _without(shape, but)) != first:
                raise TwoscaleError(
                    f"all pieces of '{self.name}' must have one shape: {self.labels[0]} has "
                    f"{self.shapes[0]}, {label} has {shape}; leave out or mend the ones that differ"
                )

    def stacked(self) -> StackedArray:
        """Return the pieces as samples, along a new first axis."""
        self.require_agreement()
        return StackedArray(self)

    def joined(self, axis: int) -> JoinedArray:
        """Return the pieces one after the other along the axis of their samples."""
        self.require_agreement(but=axis)
        return JoinedArray(self, axis)


class StackedArray:
    """Pieces as samples, along a new first axis; each is opened when it is read."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self.dtype = pieces.dtype
        self.shape = (len(pieces.openers), *pieces.shape)

    def __getitem__(self, index: Index) -> np.ndarray:
        found = []
        for place in range(*index[0].indices(self.shape[0])):
            with self.pieces.openers[place]() as array:
                found.append(np.array(array[tuple(index[1:])]))
        return np.stack(found)


class JoinedArray:
    """Pieces one after the other along the axis of their samples."""

    def __init__(self, pieces: Pieces, axis: int) -> None:
        self.pieces = pieces
        self.axis = axis
        self.dtype = pieces.dtype
        self.ends = np.cumsum([shape[axis] for shape in pieces.shapes])
        first = list(pieces.shape)
        first[axis] = int(self.ends[-1])
        self.shape = tuple(first)

    def __getitem__(self, index: Index) -> np.ndarray:
        wanted = np.arange(*index[self.axis].indices(self.shape[self.axis]))
        step = index[self.axis].step or 1
        found = []
        for place, end in enumerate(self.ends):
            start = end - self.pieces.shapes[place][self.axis]
            inside = wanted[(wanted >= start) & (wanted < end)] - start
            if len(inside):
                part = slice(int(inside[0]), int(inside[-1]) + 1, step)
                whole = (*index[: self.axis], part, *index[self.axis + 1 :])
                with self.pieces.openers[place]() as array:
                    found.append(np.array(array[whole]))
        return np.concatenate(found, axis=self.axis)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]
