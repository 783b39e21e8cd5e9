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
from twoscale.data.readers.archive import Archive, ArrayArchive, ArrayView, quietly, reading
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
def open_netcdf(file: Path) -> Iterator[Archive]:
    """Give the arrays of a NetCDF file, version 3 or 4."""
    with open_file(file) as handle:
        classic = handle.read(3) == b"CDF"
    with ExitStack() as stack:
        checked = None if classic else stack.enter_context(open_hdf5(file))
        with reading(file):
            if checked is None:
                groups = {"/": _opened(xarray.open_dataset, file, engine="scipy")}
            else:
                checked.refuse_links()
                groups = _opened(xarray.open_groups, file, engine="h5netcdf", phony_dims="sort")
        stack.callback(_close, groups)
        yield _named_archive(groups, checked)


@contextmanager
def open_zarr(folder: Path) -> Iterator[Archive]:
    """Give the arrays of a Zarr folder; chunks that do not fit the memory are refused."""
    _refuse_unsafe(folder)
    with reading(folder), ExitStack() as stack:
        opened = zarr.open(folder, mode="r", use_consolidated=False)  # as xarray below
        if isinstance(opened, zarr.Array):
            archive = ArrayArchive({folder.stem: opened}, single=True, opened=_fitting)
        else:
            members = sorted(opened.members(max_depth=None), key=lambda member: member[0])
            arrays = {path: one for path, one in members if isinstance(one, zarr.Array)}
            archive = ArrayArchive(arrays, opened=_fitting)
            # xarray needs names for axes.
            if any(
                getattr(one.metadata, "dimension_names", None) or "_ARRAY_DIMENSIONS" in one.attrs
                for one in arrays.values()
            ):
                groups = _opened(xarray.open_groups, folder, engine="zarr", consolidated=False)
                stack.callback(_close, groups)
                archive = _named_archive(groups, archive)
        kept = stack.pop_all()
    with kept:
        yield archive


def _fitting(name: str, array: Any) -> Any:
    """Return an array of Zarr, or raise if one of its chunks does not fit the memory."""
    needed = math.prod(array.chunks) * array.dtype.itemsize
    require_memory(f"one chunk of '{name}'", needed, "write it with smaller chunks")
    return array


def _opened(function: Any, path: Path, **options: Any) -> Any:
    """Return what xarray opens; dates stay numbers."""
    with quietly():
        return function(path, decode_times=False, decode_coords=False, **options)


def _close(groups: dict[str, Any]) -> None:
    with quietly():  # SciPy warns while arrays of the file are still around
        for group in groups.values():
            group.close()


def _named_archive(groups: dict[str, Any], checked: Archive | None) -> ArrayArchive:
    """Return the variables of xarray datasets by name, those of groups by `group/name`.

    `checked` has the same arrays, and raises for what cannot be read safely.
    """
    fields, variables = [], {}
    for path, group in groups.items():
        for name, variable in {**group.data_vars, **group.coords}.items():
            variables[f"{path}/{name}".strip("/")] = variable.variable
        fields += [f"{path}/{name}".strip("/") for name in group.data_vars]

    def opened(name: str, variable: Any) -> ArrayView:
        if checked is not None:
            checked.find(name)
        return ArrayView(
            variable.shape, variable.dtype, lambda index: np.asarray(variable[index].values)
        )

    axes = {name: tuple(map(str, variable.dims)) for name, variable in variables.items()}
    return ArrayArchive(variables, names=sorted(fields), axes=axes, opened=opened)


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
                whole = f"which is read as a whole: give the dataset {Path(parent).parent}"
                raise TwoscaleError(f"{parent} is an array of a twoscale dataset, {whole}")
            for codec in _codecs(described):
                if codec.removeprefix("numcodecs.") not in _SAFE:
                    advice = "write the array again with a common one, such as zstd"
                    unsafe = f"{Path(parent, name)} names the codec '{codec}'"
                    raise TwoscaleError(f"{unsafe}, which is not trusted: {advice}")


def _codecs(described: Any) -> Iterator[str]:
    """Yield the names of all codecs in the description of arrays, however deep."""
    for key, value in described.items() if isinstance(described, dict) else ():
        if key in _CODEC_ENTRIES:
            for one in value if isinstance(value, list) else [value] if value else []:
                yield str(one.get("name", one.get("id")) if isinstance(one, dict) else one)
                yield from _codecs(one)
        elif key != "attributes" and not key.endswith(".zattrs"):
            yield from _codecs(value)
