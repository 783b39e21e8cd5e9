"""Arrays with named axes: NetCDF 3 and 4, and Zarr as xarray and others write it."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.chunking import is_our_array
from twoscale.data.readers.archive import Archive, Found
from twoscale.data.readers.base import Index, quietly, reading
from twoscale.data.readers.hdf5 import open_hdf5
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import open_file, read_json
from twoscale.runtime.memory import require_memory

try:
    import xarray
    import zarr
except ImportError as error:
    raise missing_extra(error.name or "xarray", "data") from error

_SAFE = {"bytes", "transpose", "blosc", "gzip", "zstd", "crc32c", "sharding_indexed"}
_SAFE |= {"vlen-utf8", "vlen-bytes", "zlib", "lz4", "bz2", "lzma", "shuffle", "delta"}
_SAFE |= {"fixedscaleoffset", "quantize", "bitround", "adler32", "crc32", "fletcher32", "astype"}
"""Codecs of Zarr arrays that only compute; others, such as pickle, could run code."""
_CODEC_ENTRIES = ("codecs", "index_codecs", "filters", "compressor", "serializer")
_DESCRIPTIONS = {".zarray", ".zmetadata", "zarr.json"}


@contextmanager
def open_netcdf(file: Path) -> Iterator[NamedArchive]:
    """Give the arrays of a NetCDF file, version 3 or 4."""
    with open_file(file) as handle:
        classic = handle.read(3) == b"CDF"
    with ExitStack() as stack:
        checked = None if classic else stack.enter_context(open_hdf5(file))
        with reading(file):
            if checked is not None:
                checked.refuse_links()
            if classic:
                groups = {"/": _opened(xarray.open_dataset, file, engine="scipy")}
            else:
                groups = _opened(xarray.open_groups, file, engine="h5netcdf", phony_dims="sort")
        stack.callback(_close, groups)
        yield NamedArchive(groups, checked)


@contextmanager
def open_zarr(folder: Path) -> Iterator[Archive]:
    """Give the arrays of a Zarr folder."""
    _refuse_unsafe(folder)
    with reading(folder):
        plain = zarr.open(folder, mode="r", use_consolidated=False)  # as xarray below
        if isinstance(plain, zarr.Array) or not _are_named(plain):
            groups = None
        else:
            groups = _opened(xarray.open_groups, folder, engine="zarr", consolidated=False)
    if groups is None:
        yield ZarrArchive(folder.stem, plain)
        return
    with ExitStack() as stack:
        stack.callback(_close, groups)
        yield NamedArchive(groups, ZarrArchive(folder.stem, plain))


def _opened(function: Any, path: Path, **options: Any) -> Any:
    """Return what xarray opens; dates stay numbers."""
    with quietly():
        return function(path, decode_times=False, decode_coords=False, **options)


def _close(groups: dict[str, Any]) -> None:
    with quietly():  # SciPy warns while arrays of the file are still around
        for group in groups.values():
            group.close()


def _refuse_unsafe(folder: Path) -> None:
    """Refuse a Zarr folder with links or special files, codecs that are not known, or our arrays.

    An array of a dataset is read with its checksums or not at all: Zarr takes lost files for zeros.
    """
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent, name)
            kind = os.lstat(path).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise TwoscaleError(f"{path} is no regular file or folder: copy what it stands for")
        for name in _DESCRIPTIONS & set(names):
            described = read_json(Path(parent, name))
            if is_our_array(described):
                raise TwoscaleError(
                    f"{parent} is an array of a twoscale dataset, which is read as a whole: give "
                    f"the dataset {Path(parent).parent}"
                )
            for codec in _codecs(described):
                if codec.removeprefix("numcodecs.") not in _SAFE:
                    raise TwoscaleError(
                        f"{Path(parent, name)} names the codec '{codec}', which is not trusted: "
                        "write the array again with a common one, such as zstd"
                    )


def _codecs(described: Any) -> Iterator[str]:
    """Yield the names of all codecs in the description of arrays, however deep."""
    for key, value in described.items() if isinstance(described, dict) else ():
        if key in _CODEC_ENTRIES:
            for one in value if isinstance(value, list) else [value] if value else []:
                yield str(one.get("name", one.get("id")) if isinstance(one, dict) else one)
                yield from _codecs(one)
        elif key != "attributes" and not key.endswith(".zattrs"):
            yield from _codecs(value)


def _are_named(group: Any) -> bool:
    """Say whether any array of a Zarr group has names for its axes, as xarray needs them."""
    return any(
        getattr(array.metadata, "dimension_names", None) or "_ARRAY_DIMENSIONS" in array.attrs
        for _, array in group.members(max_depth=None)
        if isinstance(array, zarr.Array)
    )


class NamedArchive(Archive):
    """The variables of xarray datasets, by their names, those of groups by `group/name`."""

    def __init__(self, groups: dict[str, Any], checked: Archive | None) -> None:
        """Take groups of variables, and the same arrays seen by a reader that checks them."""
        self.variables = {
            f"{path}/{name}".strip("/"): variable
            for path, group in groups.items()
            for name, variable in {**group.data_vars, **group.coords}.items()
        }
        self.fields = sorted(
            f"{path}/{name}".strip("/")
            for path, group in groups.items()
            for name in group.data_vars
        )
        self.checked = checked

    def names(self) -> list[str]:
        return self.fields

    def array(self, name: str) -> Found | None:
        found = self.variables.get(name)
        if found is None:
            return None
        if self.checked is not None:
            self.checked.array(name)  # raises for what cannot be read safely
        return _Variable(found.variable)

    def axes(self, name: str) -> tuple[str, ...] | None:
        return tuple(str(one) for one in self.variables[name].dims)


class _Variable:
    """A variable of xarray, read part by part."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.shape: tuple[int, ...] = variable.shape
        self.dtype: np.dtype = variable.dtype

    def __getitem__(self, index: Index) -> np.ndarray:
        return np.asarray(self.variable[tuple(index)].values)


class ZarrArchive(Archive):
    """The arrays of a Zarr folder; chunks that do not fit the memory are refused."""

    def __init__(self, name: str, opened: Any) -> None:
        self.single = isinstance(opened, zarr.Array)
        if self.single:
            self.arrays = {name: opened}
            return
        self.arrays = {
            path: array
            for path, array in opened.members(max_depth=None)
            if isinstance(array, zarr.Array)
        }

    def names(self) -> list[str]:
        return sorted(self.arrays)

    def array(self, name: str) -> Found | None:
        found = self.arrays.get(name)
        if found is not None:
            needed = math.prod(found.chunks) * found.dtype.itemsize
            require_memory(f"one chunk of '{name}'", needed, "write it with smaller chunks")
        return found
