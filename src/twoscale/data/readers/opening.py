"""Files and folders of arrays, opened by what they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from glob import glob, has_magic
from importlib import import_module
from pathlib import Path

import numpy as np

from twoscale.data.description import DESCRIPTION, is_dataset, is_remainder, lost
from twoscale.data.readers.archive import (
    Archive,
    ArrayArchive,
    FoundArray,
    Pieces,
    listed,
    natural,
    reading,
)
from twoscale.errors import TwoscaleError
from twoscale.files import open_file
from twoscale.files.npy import open_npy
from twoscale.files.reading import unreadable

KINDS = "npz, npy, HDF5, MAT, NetCDF, Zarr, .pt, PNG or TIFF"
_ENDINGS = {
    "npz": ".npz",
    "npy": ".npy",
    "mat": ".mat",
    "torch": ".pt .pth",
    "hdf5": ".h5 .hdf5 .hdf .he5",
    "netcdf": ".nc .nc4 .nc3 .cdf .netcdf",
    "image": ".png .tif .tiff",
}
_KIND_OF = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
_MODULES = {"torch": "torch_file", "image": "images", "netcdf": "named_axes", "zarr": "named_axes"}
"""Where a reader is, if not in the module of its kind; some need another package."""
_HOLD_SEVERAL = ("npz", "mat", "hdf5", "netcdf")  # several arrays
_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")


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
        if _kind(paths[0]) in _HOLD_SEVERAL:
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
    return path.suffix.lower() in _KIND_OF


def expanded(files: Sequence[str | Path]) -> list[Path]:
    """Return files with patterns such as `runs/*.h5` replaced by what they match."""
    paths: list[Path] = []
    for file in files:
        text = os.fspath(file)
        if not has_magic(text) or os.path.lexists(text):
            paths.append(Path(file))
            continue
        matches = sorted(glob(text), key=natural)
        if not matches:
            raise TwoscaleError(f"no file matches {text}")
        paths += [Path(match) for match in matches]
    return paths


def _open_one(path: Path) -> AbstractContextManager[Archive]:
    """Return the reader of a file or folder, chosen by its content, or by its ending."""
    if path.is_dir():
        return _open_folder(path)
    with open_file(path) as handle, reading(path):
        start = handle.read(512)
    kind = _kind(path)
    is_hdf5 = start.startswith(b"\x89HDF\r\n\x1a\n")
    if start.startswith(b"CDF"):
        kind = "netcdf"
    elif (is_hdf5 and kind != "netcdf") or (kind == "mat" and b"MATLAB 7.3" in start):
        kind = "hdf5"
    elif kind == "npy":
        return nullcontext(ArrayArchive({path.stem: open_npy(path)}, single=True))
    if kind is None:
        raise TwoscaleError(f"{path} is of no known kind: give {KINDS}")
    return _reader(kind, path)


def _reader(kind: str, path: Path) -> AbstractContextManager[Archive]:
    module = import_module(f"twoscale.data.readers.{_MODULES.get(kind, kind)}")
    opened: AbstractContextManager[Archive] = getattr(module, f"open_{kind}")(path)
    return opened


def _open_folder(folder: Path) -> AbstractContextManager[Archive]:
    """Return the reader of a folder: Zarr, files of one array each, or files of several."""
    if is_dataset(folder):
        raise TwoscaleError(f"{folder} is a twoscale dataset already: use it as it is")
    if is_remainder(folder):
        raise lost(folder, DESCRIPTION)
    if _is_zarr(folder):
        return _reader("zarr", folder)
    paths = _contents(folder)
    if all(path.is_file() and _kind(path) == "image" for path in paths):
        with _open_one(paths[0]) as first:
            image = first.find(first.names()[0])
            many_pages = image is not None and "sample" in (image.axes or ())
        return open_archive(paths, in_order=False) if many_pages else _open_single(folder)
    return open_archive(paths, in_order=False)


@contextmanager
def _open_single(path: Path) -> Iterator[Archive]:
    """Give one array: that of a file, or of a folder with one file for each sample."""
    if path.is_dir() and not _is_zarr(path):
        paths = _contents(path)
        _require_one_kind(paths)
        yield FilesArchive(paths, name=path.name)
        return
    with _open_one(path) as archive:
        yield archive


def _is_zarr(folder: Path) -> bool:
    return any((folder / name).exists() for name in _ZARR_FILES)


def _kind(path: Path) -> str | None:
    return _KIND_OF.get(path.suffix.lower())


def _contents(folder: Path) -> list[Path]:
    """Return the files and folders in a folder, sorted by the numbers in their names."""
    try:
        names = sorted((name for name in os.listdir(folder) if name[0] != "."), key=natural)
    except OSError as error:
        raise unreadable(folder, error) from error
    if not names:
        raise TwoscaleError(f"{folder} is empty: give a file or folder of arrays, {KINDS}")
    return [folder / name for name in names]


def _require_one_kind(paths: Sequence[Path]) -> None:
    first = {path.suffix: path for path in reversed(paths)}
    if len(first) > 1:
        one, other, *_ = (first[suffix] for suffix in sorted(first))
        raise TwoscaleError(
            f"several files must be of one kind, got {one} and {other}: give one file with all "
            "arrays, npy files of one array each, or files of the same arrays"
        )


class NamedFiles(Archive):
    """Files of one array each, which have the files' names; two `in_order` are a pair."""

    def __init__(self, paths: Sequence[Path], opened: Sequence[Archive], *, in_order: bool) -> None:
        self.paths = paths
        self.opened = opened
        self.in_order = in_order
        for path, archive in zip(paths, opened, strict=True):
            if not archive.single:
                text = f"several files must be of one kind: {path} holds several arrays"
                raise TwoscaleError(text)

    def names(self) -> list[str]:
        return [path.stem for path in self.paths]

    def pair(self) -> list[FoundArray] | None:
        if not self.in_order or len(self.paths) != 2:
            return None
        arrays = (archive.find(archive.names()[0]) for archive in self.opened)
        return [found for found in arrays if found is not None]

    def find(self, name: str) -> FoundArray | None:
        names = self.names()
        if len(set(names)) < len(names):
            paths = listed(map(str, self.paths))
            raise TwoscaleError(
                f"arrays are named by their files, which need different names, got {paths}"
            )
        if name not in names:
            return None
        archive = self.opened[names.index(name)]
        return archive.find(archive.names()[0])


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

    def find(self, name: str) -> FoundArray | None:
        openers = [partial(self._piece, file, name) for file in self.files]
        shapes: list[tuple[int, ...]] = []
        dtypes, axes = [], None
        for file, opener in zip(self.files, openers, strict=True):
            with opener() as found:
                if found is None and not shapes:
                    return None
                if found is None:
                    other = f"which {self.files[0]} has: all files must hold the same arrays"
                    raise TwoscaleError(f"{file} has no array '{name}', {other}")
                array = found.array
                if isinstance(array, Pieces):
                    text = f"'{name}' is in several groups of {file}: import the files one by one"
                    raise TwoscaleError(text)
                axes = axes if shapes else found.axes
                shapes.append(tuple(array.shape))
                dtypes.append(array.dtype)
        odd = [dtype for dtype in dtypes if dtype.kind not in "fiub"]
        dtype = odd[0] if odd else np.result_type(*dtypes)
        labels = [str(file) for file in self.files]
        return FoundArray(Pieces(name, openers, labels, shapes, dtype), axes)

    @contextmanager
    def _piece(self, file: Path, name: str) -> Iterator[FoundArray | None]:
        with _open_one(file) as archive, reading(file):
            if self.name is not None:
                if not archive.single:
                    advice = "give one folder of such files, with 'inputs' and 'outputs'"
                    raise TwoscaleError(f"{file} holds several arrays: {advice}")
                name = archive.names()[0]
            yield archive.find(name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        with self._piece(self.files[0], name) as found:
            return None if found is None else tuple(found.array.shape)

    def periodic(self) -> tuple[bool, bool] | None:
        with _open_one(self.files[0]) as archive:
            return archive.periodic()
