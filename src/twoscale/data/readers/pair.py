"""The two arrays of an import, from one file or two, by what the files are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from twoscale.data.readers.base import Archive, StoredArray, reading
from twoscale.data.readers.mat import open_mat
from twoscale.data.readers.npz import open_npz
from twoscale.errors import TwoscaleError
from twoscale.files import open_file, open_npy

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_WANTED = "give one npz, HDF5 or MAT file with both arrays, or two npy files"
_SHOWN = 20  # names of arrays in a sentence


@contextmanager
def open_pair(
    files: list[Path], input_key: str | None, output_key: str | None
) -> Iterator[tuple[StoredArray, StoredArray]]:
    """Give the input array and the output array that one file or two hold."""
    if len(files) == 2:
        yield _open_single(files[0]), _open_single(files[1])
        return
    if len(files) != 1:
        raise TwoscaleError(f"{_WANTED}, got {len(files)} files")
    file = files[0]
    with _opener(file)(file) as archive:
        inputs = _named(file, archive, input_key, "--input")
        yield inputs, _named(file, archive, output_key, "--output")


def _open_single(file: Path) -> StoredArray:
    if file.suffix in (".npz", ".h5", ".hdf5", ".mat"):
        with open_file(file):  # what cannot be read is told first
            raise TwoscaleError(f"two files must be npy files, got {file}: {_WANTED}")
    return open_npy(file)


def _named(file: Path, archive: Archive, key: str | None, option: str) -> StoredArray:
    with reading(file):
        array = None if key is None else archive.array(key)
        if array is not None:
            return array
        held = _list(archive.names())
    if key is None:
        raise TwoscaleError(f"say which array of {file} is which with {option}: it holds {held}")
    raise TwoscaleError(f"{file} has no array '{key}' ({option}): it holds {held}")


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "no arrays") + more


def _opener(file: Path) -> Callable[[Path], AbstractContextManager[Archive]]:
    """Return what opens a file, by what it is where its name may mislead."""
    with open_file(file) as handle, reading(file):
        start = handle.read(512)
    if (
        start[:8] == _HDF5_MAGIC
        or file.suffix in (".h5", ".hdf5")
        or (file.suffix == ".mat" and b"MATLAB 7.3" in start)
    ):
        from twoscale.data.readers.hdf5 import open_hdf5  # needs an optional dependency

        return open_hdf5
    if file.suffix == ".npy":
        raise TwoscaleError(f"{file} holds one array: give the input's and the output's npy file")
    if file.suffix == ".npz":
        return open_npz
    if file.suffix == ".mat":
        return open_mat
    raise TwoscaleError(f"{file} is of no known kind: give npz, HDF5 or MAT, or two npy files")
