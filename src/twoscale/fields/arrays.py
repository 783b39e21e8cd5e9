"""Arrays of any kind that users have: lists, labelled arrays, arrays on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.source import Shape, chunk_length, range_length, single_precision, slices
from twoscale.fields.workers import IN_TURN, Workers
from twoscale.runtime.memory import available_memory

_BYTES = 4  # of a number in single precision
NO_COMPLEX = "give the real and the imaginary part as two channels"
_SAMPLES = """n s sample samples batch realization realisation member ensemble number trajectory
trajectories case simulation run index idx"""
_CHANNELS = "c channel channels component components variable field feature features band nc"
SAMPLE_AXES, CHANNEL_AXES = _SAMPLES.split(), _CHANNELS.split()
"""Names that labelled arrays and files give to the axes of samples and of channels."""
_LISTED = 5  # samples that an error names, at most


class StoredRows:
    """Some samples of an array that is too large for the memory; parts of it are read when needed.

    `array` is anything with a shape, a dtype and slices: a Zarr array, an h5py dataset, a memory
    map, a labelled array of a file. `rows` are the samples, in ascending order; all by default.
    """

    def __init__(self, array: Any, rows: np.ndarray | None = None) -> None:
        self.array = array
        self.rows = np.arange(array.shape[0]) if rows is None else rows

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), *(int(side) for side in self.array.shape[1:]))

    @property
    def ndim(self) -> int:
        return len(self.array.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> StoredRows:
        """Return some of these samples; nothing is read."""
        return StoredRows(self.array, self.rows[rows])

    def parts(self) -> Iterator[np.ndarray]:
        """Yield the samples in batches, reading every stretch of the array that holds some once."""
        length = chunk_length(*self.array.shape[1:])
        for part in slices(int(self.array.shape[0]), length):
            low, high = np.searchsorted(self.rows, (part.start, part.stop))
            if low < high:
                values = np.asarray(self.array[part.start : part.stop])
                yield values[self.rows[low:high] - part.start]


class StoredRowsSource:
    """The samples of `StoredRows` as fields of a shape, read and checked on each pass."""

    def __init__(
        self, rows: StoredRows, shape: Shape, name: str, device: torch.device | str = "cpu"
    ) -> None:
        self.rows = rows
        self.shape = shape
        self.name = name
        self.device = device

    @property
    def workers(self) -> Workers:
        return IN_TURN  # libraries of files often work on one thread only

    def ranges(self) -> list[slice]:
        samples, *sides = self.shape
        return list(slices(samples, range_length(*sides)))

    def read(self, samples: slice) -> Iterator[Tensor]:
        return map(self._checked, self.rows[samples].parts())

    def chunks(self) -> Iterator[Tensor]:
        return map(self._checked, self.rows.parts())

    def _checked(self, values: np.ndarray) -> Tensor:
        chunk = single_precision(values)
        if not bool(torch.isfinite(chunk).all()):
            raise TwoscaleError(f"the {self.name} contain NaN or infinite values")
        return chunk.reshape(-1, *self.shape[1:]).to(self.device)

    def to(self, device: torch.device) -> StoredRowsSource:
        return StoredRowsSource(self.rows, self.shape, self.name, device)


def as_array(given: Any, name: str) -> np.ndarray | Tensor | StoredRows:
    """Return an array of real numbers, whatever kind the user's is, or say what is wrong with it.

    Lists, labelled arrays (xarray) and arrays on disk (Zarr, HDF5, memory maps) are read into
    memory. Those that would take more than half of it stay where they are.
    """
    if isinstance(given, np.ma.MaskedArray):
        raise TwoscaleError(f"the {name} are a masked array: fill in or leave out what is masked")
    if not isinstance(given, np.ndarray | Tensor) and is_labelled(given):
        _check_order([str(one) for one in given.dims], name)
    if isinstance(given, Tensor | StoredRows):
        array: Any = given
    elif isinstance(given, list | tuple):
        array = _listed(given, name)
    elif isinstance(given, np.generic) or not hasattr(given, "__array__"):
        advice = ": read a file with twoscale.data.load_fields" if isinstance(given, str) else ""
        raise TwoscaleError(f"the {name} must be an array, got {type(given).__name__}{advice}")
    else:
        array = _opened(given, name)
    _check_real(array.array if isinstance(array, StoredRows) else array, name)
    return array


def is_labelled(given: Any) -> bool:
    """Say whether an array has names for its axes, as those of xarray do."""
    return all(hasattr(given, name) for name in ("dims", "coords", "values"))


def _check_order(axes: Sequence[str], name: str) -> None:
    """Raise if axes whose names say samples and channels are not the first ones, in this order."""
    samples = [axis for axis in axes if axis.lower() in SAMPLE_AXES]
    front = samples + [axis for axis in axes if axis.lower() in CHANNEL_AXES]
    if list(axes[: len(front)]) != front:
        words = ", ".join(f"'{axis}'" for axis in front)
        raise TwoscaleError(
            f"the {name} have the axes {', '.join(axes)}, but samples come first, then channels, "
            f"then the grid: call transpose({words}, ...)"
        )


def _listed(given: list[Any] | tuple[Any, ...], name: str) -> np.ndarray | Tensor:
    """Return a list of numbers, of lists, or of arrays of one shape."""
    if given and all(isinstance(one, Tensor) for one in given):
        shapes = {tuple(one.shape) for one in given}
        if len(shapes) == 1:
            return torch.stack(list(given))
        raise TwoscaleError(_unequal(name, shapes))
    try:
        return np.asarray(given)
    except ValueError as error:  # lists of unequal length
        shapes = {np.shape(one) for one in given if hasattr(one, "shape")}
        raise TwoscaleError(_unequal(name, shapes)) from error


def _unequal(name: str, shapes: set[tuple[int, ...]]) -> str:
    shown = f" ({', '.join(map(str, sorted(shapes)[:_LISTED]))})" if shapes else ""
    return (
        f"the {name} are a list whose entries differ in shape{shown}: all samples must have the "
        "same shape"
    )


def _opened(given: Any, name: str) -> np.ndarray | StoredRows:
    """Return what an array of any library holds as NumPy, or its rows if it is too large."""
    try:
        if _stays_on_disk(given):
            return StoredRows(given)
        return given if isinstance(given, np.ndarray) else np.asarray(given)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise TwoscaleError(
            f"the {name}, a {type(given).__name__}, cannot be turned into a NumPy array (an array "
            f"of a file needs the file open): {error}"
        ) from error


def _stays_on_disk(given: Any) -> bool:
    """Say whether an array is not in memory yet and would take more than half of it."""
    if isinstance(given, np.ndarray) and not isinstance(given, np.memmap):
        return False
    if not all(hasattr(given, name) for name in ("shape", "dtype", "__getitem__")):
        return False
    shape = tuple(given.shape)
    return len(shape) > 0 and _BYTES * prod(shape) > available_memory() // 2


def _check_real(array: Any, name: str) -> None:
    if isinstance(array, Tensor):
        if array.is_complex():
            raise TwoscaleError(f"the {name} must be real numbers, got {array.dtype}: {NO_COMPLEX}")
        return
    kind = np.dtype(array.dtype).kind
    if kind == "c":
        raise TwoscaleError(f"the {name} must be real numbers, got {array.dtype}: {NO_COMPLEX}")
    if kind not in "fiub":
        raise TwoscaleError(f"the {name} must be real numbers, got dtype {array.dtype}")
