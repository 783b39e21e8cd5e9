"""People's own pairs of fields, from the files they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from twoscale.data.generation import describe
from twoscale.data.store import Dataset
from twoscale.data.writer import writing
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.grid import Grid
from twoscale.problems import Problem
from twoscale.progress import Progress
from twoscale.source import slices

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def import_fields(
    files: Sequence[str | Path],
    path: str | Path,
    *,
    input_key: str | None = None,
    output_key: str | None = None,
    problem: Problem | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Write a dataset from one npz, HDF5 or MAT file with two arrays, or from two npy files.

    Arrays are (samples, height, width); an axis of length 1 for a channel is dropped.
    """
    with _opened([Path(file) for file in files], input_key, output_key) as (inputs, outputs):
        pair = [_as_fields(array, name) for array, name in ((inputs, "input"), (outputs, "output"))]
        if pair[0].shape != pair[1].shape:
            raise TwoscaleError(
                f"the input fields have shape {pair[0].shape}, the output fields {pair[1].shape}: "
                "they must agree"
            )
        samples, height, width = pair[0].shape
        description = describe(problem, Grid(height, width), samples) | {"seed": None}
        with writing(path, description, overwrite=overwrite) as writer:
            for part in slices(samples, writer.chunk):
                with _readable(Path(files[0])):
                    values = [array.read(part) for array in pair]
                writer.write(part.start, *values)
                if progress:
                    progress("samples", part.stop, samples, "")
            return writer.finish()


class _FieldArray:
    """An array-like read in slices of samples and checked as it is read."""

    def __init__(self, array: Any, name: str, shape: tuple[int, int, int]) -> None:
        self.array = array
        self.name = name
        self.shape = shape

    def read(self, part: slice) -> np.ndarray:
        values = np.asarray(self.array[part], dtype=np.float32).reshape(-1, *self.shape[1:])
        bad = ~np.isfinite(values).all(axis=(1, 2))
        if bad.any():
            first = part.start + int(bad.argmax())
            raise TwoscaleError(
                f"the {self.name} fields contain NaN or infinite values, first in sample {first}"
            )
        return values


def _as_fields(array: Any, name: str) -> _FieldArray:
    if array.dtype.kind not in "fiub":
        raise TwoscaleError(f"the {name} fields must be real numbers, got dtype {array.dtype}")
    shape = tuple(int(size) for size in array.shape)
    if len(shape) == 4 and 1 in (shape[1], shape[3]):
        shape = (shape[0], *(shape[2:] if shape[1] == 1 else shape[1:3]))
    if len(shape) != 3 or not shape[0]:
        raise TwoscaleError(
            f"the {name} fields must have shape (samples, height, width), got {tuple(array.shape)}"
        )
    return _FieldArray(array, name, (shape[0], shape[1], shape[2]))


@contextmanager
def _opened(
    files: list[Path], input_key: str | None, output_key: str | None
) -> Iterator[tuple[Any, Any]]:
    """Give the two arrays the files hold."""
    for file in files:
        if not file.is_file():
            raise TwoscaleError(f"{file} does not exist")
    if len(files) == 2:
        yield _open_npy(files[0]), _open_npy(files[1])
        return
    if len(files) != 1:
        raise TwoscaleError(f"give one file with both arrays or two npy files, got {len(files)}")
    file = files[0]
    with _reader(file)(file) as arrays:
        keys = [
            _key(file, arrays, key, option)
            for key, option in ((input_key, "--input"), (output_key, "--output"))
        ]
        with _readable(file):
            pair = arrays[keys[0]], arrays[keys[1]]
        yield pair


def _key(file: Path, arrays: Mapping[str, Any], key: str | None, option: str) -> str:
    held = ", ".join(arrays) or "no arrays"
    if key is None:
        raise TwoscaleError(f"say which array of {file} is which with {option}: it holds {held}")
    if key not in arrays:
        raise TwoscaleError(f"{file} has no array '{key}' ({option}): it holds {held}")
    return key


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn whatever a file library raises on bad bytes into one sentence."""
    try:
        yield
    except TwoscaleError:
        raise
    except Exception as error:
        raise TwoscaleError(f"{file} is damaged or not what its name says: {error}") from error


def _open_npy(file: Path) -> Any:
    with _readable(file):
        return np.load(file, mmap_mode="r", allow_pickle=False)


@contextmanager
def _npz(file: Path) -> Iterator[Mapping[str, Any]]:
    with _readable(file):
        archive = np.load(file, allow_pickle=False)
    with archive:
        yield archive


@contextmanager
def _mat(file: Path) -> Iterator[Mapping[str, Any]]:
    with _readable(file):
        content = loadmat(file)
    yield {key: value for key, value in content.items() if not key.startswith("__")}


@contextmanager
def _hdf5(file: Path) -> Iterator[Mapping[str, Any]]:
    """Arrays of an HDF5 file; MATLAB's v7.3 files store axes in reverse, which is undone."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("h5py", "data") from error
    arrays: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = _Reversed(item) if file.suffix == ".mat" else item

    with _readable(file):
        handle = h5py.File(file, "r")
    with handle:
        handle.visititems(keep)
        yield arrays


class _Reversed:
    """A stored array seen with its axes in reverse, read slice by slice."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape[::-1]

    def __getitem__(self, part: slice) -> np.ndarray:
        return np.asarray(self.array[..., part]).T


def _reader(file: Path) -> Callable[[Path], AbstractContextManager[Mapping[str, Any]]]:
    """Return the reader for a file, by what it is where its name may mislead."""
    with _readable(file), file.open("rb") as handle:
        start = handle.read(512)
    if start[:8] == _HDF5_MAGIC or (file.suffix == ".mat" and b"MATLAB 7.3" in start):
        return _hdf5
    readers = {".npz": _npz, ".mat": _mat, ".h5": _hdf5, ".hdf5": _hdf5}
    if file.suffix == ".npy":
        raise TwoscaleError(f"{file} holds one array: give the input's and the output's npy file")
    if file.suffix not in readers:
        raise TwoscaleError(f"{file} is of no known kind: give npz, HDF5 or MAT, or two npy files")
    return readers[file.suffix]
