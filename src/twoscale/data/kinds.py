"""What is at a path: a dataset, a run, a study folder, a file of arrays, or something else."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from twoscale.data.description import DESCRIPTION, is_remainder, may_be_dataset
from twoscale.data.places import URL, place_of
from twoscale.errors import TwoscaleError
from twoscale.files import SUMS, open_file, read_json
from twoscale.surrogate.artifact import MANIFEST


class Kind(Enum):
    """A kind of file or folder, in words."""

    DATASET = "a dataset"
    RUN = "a run"
    SURROGATE = "a surrogate saved from Python"
    RUNS = "a folder of runs"
    STUDIES = "a study folder"
    RECORDS = "a folder of study records"
    DEMO = "a demo's folder"
    ZARR = "a Zarr store that twoscale did not write"
    EMPTY = "an empty folder"
    FOLDER = "a folder of something else"
    NPY = "an npy file"
    NPZ = "an npz file"
    HDF5 = "an HDF5 file"
    MAT = "a MAT file"
    NETCDF = "a NetCDF file"
    TORCH = "a file of torch tensors"
    PAGE = "a web page"
    YAML = "a YAML file"
    FILE = "a file of something else"

    @property
    def is_file(self) -> bool:
        return self in _FILES


_FILES = {
    *(Kind.NPY, Kind.NPZ, Kind.HDF5, Kind.MAT),
    *(Kind.NETCDF, Kind.TORCH, Kind.PAGE, Kind.YAML, Kind.FILE),
}
_MAGIC = {
    b"\x93NUMPY": Kind.NPY,
    b"PK\x03\x04": Kind.NPZ,
    b"\x89HDF": Kind.HDF5,
    b"MATLAB": Kind.MAT,
    b"CDF": Kind.NETCDF,
    b"<!doc": Kind.PAGE,
    b"<!DOC": Kind.PAGE,
}
_SUFFIXES = {
    ".pt": Kind.TORCH,
    ".pth": Kind.TORCH,
    ".mat": Kind.MAT,
    ".nc": Kind.NETCDF,
}
"""Files whose first bytes are also those of other kinds."""

_STUDY_PARTS = ("records", "cells")
_DEMO = "demo.json"
_CONFIG = "config.json"  # of a run, which may have lost its checksums


def kind_of(path: Path) -> Kind | None:
    """Return what is at a path, judged by names and first bytes; None if it cannot be read.

    A damaged dataset or run is of its kind still: whoever opens it says what is damaged. On a
    storage service there are only datasets.
    """
    if isinstance(place_of(path), URL):
        return Kind.DATASET
    try:
        if os.path.isdir(path):
            return _kind_of_folder(path)
        return _kind_of_file(path)
    except (OSError, TwoscaleError):
        return None


def runs_in(folder: Path) -> list[Path]:
    """Return the runs and saved surrogates directly inside a folder, in the order of names."""
    return sorted(one for one in folder.iterdir() if (one / MANIFEST).is_file())


def _kind_of_folder(path: Path) -> Kind:
    held = {entry.name for entry in path.iterdir()}
    if DESCRIPTION in held:
        return Kind.DATASET if may_be_dataset(path) else Kind.ZARR
    if held & {".zgroup", ".zarray"}:
        return Kind.ZARR
    if is_remainder(path):
        return Kind.DATASET
    if SUMS in held or {MANIFEST, _CONFIG} <= held:
        return Kind.RUN
    if MANIFEST in held:
        return Kind.SURROGATE
    if _DEMO in held:
        return Kind.DEMO
    if any((path / part).is_dir() for part in _STUDY_PARTS):
        return Kind.STUDIES
    if not held:
        return Kind.EMPTY
    if runs_in(path):
        return Kind.RUNS
    return Kind.RECORDS if _holds_records(path) else Kind.FOLDER


def _holds_records(path: Path) -> bool:
    first = min(path.glob("*.json"), default=None)
    return first is not None and {"study", "cells"} <= set(read_json(first))


def _kind_of_file(path: Path) -> Kind:
    with open_file(path) as file:
        start = file.read(8)
    found = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), Kind.FILE)
    suffix = path.suffix.lower()
    if found is Kind.FILE:
        return Kind.YAML if suffix in (".yaml", ".yml") else found
    return _SUFFIXES.get(suffix, found)
