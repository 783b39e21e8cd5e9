"""Files and folders of arrays, opened by what they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.description import DESCRIPTION, is_dataset, is_remainder, lost
from twoscale.data.readers.archive import Archive, Found, SingleArchive
from twoscale.data.readers.base import listed, natural, reading
from twoscale.data.readers.mat import open_mat
from twoscale.data.readers.npz import open_npz
from twoscale.data.readers.pieces import Pieces
from twoscale.data.readers.torch_file import open_torch
from twoscale.errors import TwoscaleError
from twoscale.files import open_file
from twoscale.files.npy import open_npy
from twoscale.files.reading import unreadable

KINDS = "npz, npy, HDF5, MAT, NetCDF, Zarr, .pt, PNG or TIFF"
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_NETCDF_MAGIC = b"CDF"
_HDF5 = (".h5", ".hdf5", ".hdf", ".he5")
_NETCDF = (".nc", ".nc4", ".nc3", ".cdf", ".netcdf")
_TORCH = (".pt", ".pth")
_IMAGES = (".png", ".tif", ".tiff")
_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")

Opened = AbstractContextManager[Archive]


@contextmanager
def open_archive(paths: Sequence[Path], *, in_order: bool = True) -> Iterator[Archive]:
    """Give the arrays of one file or folder, or those of several taken together.

    Files of one array each (npy, images, a tensor, folders of such files) are arrays with the
    files' names. Several files of the same arrays are pieces of these arrays. `in_order` says that
    a user gave the paths, so that the first of two is the input.
    """
    if not paths:
        raise TwoscaleError(f"give a file or folder of arrays: {KINDS}")
    with ExitStack() as stack:
        if len(paths) == 1:
            yield stack.enter_context(_open_one(paths[0]))
            return
        if _hold_several(paths[0]):
            _require_one_kind(paths)
            yield FilesArchive(paths)
            return
        opened = [stack.enter_context(_open_single(path)) for path in paths]
        if opened[0].single:
            yield NamedFiles(paths, opened, in_order=in_order)
        else:
            yield FilesArchive(paths)


def is_array_file(path: Path) -> bool:
    """Say whether a path has the name of a file of arrays."""
    endings = (".npz", ".npy", ".mat", *_HDF5, *_NETCDF, *_TORCH, *_IMAGES)
    return path.suffix.lower() in endings


def expanded(files: Sequence[str | Path]) -> list[Path]:
    """Return files with patterns such as `runs/*.h5` replaced by what they match."""
    found: list[Path] = []
    for file in files:
        text = os.fspath(file)
        if not has_magic(text) or os.path.lexists(text):
            found.append(Path(file))
            continue
        matches = sorted(glob(text), key=natural)
        if not matches:
            raise TwoscaleError(f"no file matches {text}")
        found += [Path(one) for one in matches]
    return found


def _open_one(path: Path) -> Opened:
    """Return the reader of a file or folder, chosen by its content, or by its ending."""
    if path.is_dir():
        return _open_folder(path)
    with open_file(path) as handle, reading(path):
        start = handle.read(512)
    suffix = path.suffix.lower()
    if suffix in _NETCDF or start.startswith(_NETCDF_MAGIC):
        from twoscale.data.readers.named_axes import open_netcdf  # needs an optional dependency

        return open_netcdf(path)
    if (
        start.startswith(_HDF5_MAGIC)
        or suffix in _HDF5
        or (suffix == ".mat" and b"MATLAB 7.3" in start)
    ):
        from twoscale.data.readers.hdf5 import open_hdf5  # needs an optional dependency

        return open_hdf5(path)
    if suffix in _IMAGES:
        from twoscale.data.readers.images import open_image  # needs an optional dependency

        return open_image(path)
    readers: dict[str, Callable[[Path], Opened]] = {".npz": open_npz, ".mat": open_mat}
    readers |= {".npy": _open_npy} | dict.fromkeys(_TORCH, open_torch)
    if suffix not in readers:
        raise TwoscaleError(f"{path} is of no known kind: give {KINDS}")
    return readers[suffix](path)


@contextmanager
def _open_npy(path: Path) -> Iterator[Archive]:
    yield SingleArchive(path.stem, open_npy(path))


def _open_folder(folder: Path) -> Opened:
    """Return the reader of a folder: Zarr, files of one array each, or files of several."""
    if is_dataset(folder):
        raise TwoscaleError(f"{folder} is a twoscale dataset already: use it as it is")
    if is_remainder(folder):
        raise lost(folder, DESCRIPTION)
    if any((folder / name).exists() for name in _ZARR_FILES):
        from twoscale.data.readers.named_axes import open_zarr  # needs an optional dependency

        return open_zarr(folder)
    held = _held(folder)
    if all(path.is_file() and path.suffix.lower() in _IMAGES for path in held):
        with _open_one(held[0]) as first:
            many_pages = "sample" in (first.axes(first.names()[0]) or ())
        return open_archive(held, in_order=False) if many_pages else _open_single(folder)
    if _hold_several(held[0]) and len(held) > 1:
        _require_one_kind(held)
        return _given(FilesArchive(held))
    return open_archive(held, in_order=False)


@contextmanager
def _open_single(path: Path) -> Iterator[Archive]:
    """Give one array: that of a file, or of a folder with one file for each sample."""
    if path.is_dir() and not any((path / name).exists() for name in _ZARR_FILES):
        held = _held(path)
        _require_one_kind(held)
        yield FilesArchive(held, name=path.name)
        return
    with _open_one(path) as archive:
        yield archive


@contextmanager
def _given(archive: Archive) -> Iterator[Archive]:
    yield archive


def _held(folder: Path) -> list[Path]:
    """Return the files and folders in a folder, sorted by the numbers in their names."""
    try:
        names = sorted((one for one in os.listdir(folder) if one[0] != "."), key=natural)
    except OSError as error:
        raise unreadable(folder, error) from error
    if not names:
        raise TwoscaleError(f"{folder} is empty: give a file or folder of arrays, {KINDS}")
    return [folder / name for name in names]


def _hold_several(path: Path) -> bool:
    """Say whether files with this ending hold several arrays."""
    return path.suffix.lower() in (".npz", ".mat", *_HDF5, *_NETCDF)


def _require_one_kind(paths: Sequence[Path]) -> None:
    kinds = sorted({path.suffix for path in paths})
    if len(kinds) > 1:
        first = {kind: next(path for path in paths if path.suffix == kind) for kind in kinds}
        raise TwoscaleError(
            f"several files must be of one kind, got {first[kinds[0]]} and {first[kinds[1]]}: give "
            "one file with all arrays, npy files of one array each, or files of the same arrays"
        )


class NamedFiles(Archive):
    """Files of one array each, which have the files' names.

    `is_pair`: they are an input and an output, in this order.
    """

    def __init__(self, paths: Sequence[Path], opened: Sequence[Archive], *, in_order: bool) -> None:
        self.is_pair = in_order and len(paths) == 2
        self.paths = paths
        self.opened = opened
        for path, one in zip(paths, opened, strict=True):
            if not one.single:
                raise TwoscaleError(
                    f"several files must be of one kind: {path} holds several arrays"
                )

    def names(self) -> list[str]:
        return [path.stem for path in self.paths]

    def array(self, name: str) -> Found | None:
        one = self._named(name)
        return None if one is None else one.array(one.names()[0])

    def axes(self, name: str) -> tuple[str, ...] | None:
        one = self._named(name)
        return None if one is None else one.axes(one.names()[0])

    def _named(self, name: str) -> Archive | None:
        names = self.names()
        if len(set(names)) < len(names):
            raise TwoscaleError(
                "arrays are named by their files, which need different names, got "
                f"{listed(str(path) for path in self.paths)}"
            )
        return self.opened[names.index(name)] if name in names else None


class FilesArchive(Archive):
    """Files with the same arrays, each a piece of them: one sample, or some.

    With a `name` the files hold one array each, which is known by that name.
    """

    def __init__(self, files: Sequence[Path], name: str | None = None) -> None:
        self.files = files
        self.name = name
        self.single = name is not None

    def names(self) -> list[str]:
        if self.name is not None:
            return [self.name]
        with _open_one(self.files[0]) as archive:
            return archive.names()

    def array(self, name: str) -> Found | None:
        openers: Any = [partial(self._piece, file, name) for file in self.files]
        shapes, dtypes = [], []
        for place, opener in enumerate(openers):
            with opener() as array:
                if array is None and not place:
                    return None
                if array is None:
                    raise TwoscaleError(
                        f"{self.files[place]} has no array '{name}', which {self.files[0]} has: "
                        "all files must hold the same arrays"
                    )
                if isinstance(array, Pieces):
                    raise TwoscaleError(
                        f"'{name}' is in several groups of {self.files[place]}: import the files "
                        "one by one"
                    )
                shapes.append(tuple(array.shape))
                dtypes.append(array.dtype)
        numbers = all(dtype.kind in "fiub" for dtype in dtypes)
        dtype = (
            np.result_type(*dtypes) if numbers else next(d for d in dtypes if d.kind not in "fiub")
        )
        return Pieces(name, openers, [str(file) for file in self.files], shapes, dtype)

    @contextmanager
    def _piece(self, file: Path, name: str) -> Iterator[Found | None]:
        with _open_one(file) as archive, reading(file):
            if self.name is not None:
                if not archive.single:
                    raise TwoscaleError(
                        f"{file} holds several arrays: give one folder of such files, with "
                        "the names of inputs and outputs"
                    )
                name = archive.names()[0]
            yield archive.array(name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        with self._piece(self.files[0], name) as array:
            return None if array is None else tuple(array.shape)

    def axes(self, name: str) -> tuple[str, ...] | None:
        with _open_one(self.files[0]) as archive:
            if self.name is not None:
                name = archive.names()[0]
            return archive.axes(name)

    def periodic(self) -> tuple[bool, bool] | None:
        with _open_one(self.files[0]) as archive:
            return archive.periodic()
