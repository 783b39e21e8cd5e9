"""What is at a path: a dataset, a run, a study folder, a file of arrays, or something else."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from twoscale.data.description import DESCRIPTION, may_be_dataset
from twoscale.data.places import URL, place_of
from twoscale.errors import TwoscaleError
from twoscale.files import SUMS, open_file, read_json
from twoscale.surrogate.artifact import MANIFEST


class ContentKind(Enum):
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


_MAGIC = {
    b"\x93NUMPY": ContentKind.NPY,
    b"PK\x03\x04": ContentKind.NPZ,
    b"\x89HDF": ContentKind.HDF5,
    b"MATLAB": ContentKind.MAT,
    b"CDF": ContentKind.NETCDF,
    b"<!doc": ContentKind.PAGE,
    b"<!DOC": ContentKind.PAGE,
}
_SUFFIXES = {"pt": ContentKind.TORCH, "pth": ContentKind.TORCH}
_SUFFIXES |= {"mat": ContentKind.MAT, "nc": ContentKind.NETCDF}
"""Files whose first bytes are also those of other kinds."""

_STUDY_PARTS = ("records", "cells")
_DEMO = "demo.json"
_CONFIG = "config.json"  # of a run, which may have lost its checksums


def kind_of(path: Path) -> ContentKind | None:
    """Return what is at a path, judged by names and first bytes; None if it cannot be read.

    A damaged dataset or run is of its kind still: whoever opens it says what is damaged. On a
    storage service there are only datasets.
    """
    if isinstance(place_of(path), URL):
        return ContentKind.DATASET
    try:
        if os.path.isdir(path):
            return _kind_of_folder(path)
        return _kind_of_file(path)
    except (OSError, TwoscaleError):
        return None


def runs_in(folder: Path) -> list[Path]:
    """Return the runs and saved surrogates directly inside a folder, in the order of names."""
    return sorted(one for one in folder.iterdir() if (one / MANIFEST).is_file())


def _kind_of_folder(path: Path) -> ContentKind:
    names = {entry.name for entry in path.iterdir()}
    if may_be_dataset(path):
        return ContentKind.DATASET
    if names & {DESCRIPTION, ".zgroup", ".zarray"}:
        return ContentKind.ZARR
    if SUMS in names or {MANIFEST, _CONFIG} <= names:
        return ContentKind.RUN
    if MANIFEST in names:
        return ContentKind.SURROGATE
    if _DEMO in names:
        return ContentKind.DEMO
    if any((path / part).is_dir() for part in _STUDY_PARTS):
        return ContentKind.STUDIES
    if not names:
        return ContentKind.EMPTY
    if runs_in(path):
        return ContentKind.RUNS
    first = min(path.glob("*.json"), default=None)
    is_record = first is not None and {"study", "cells"} <= set(read_json(first))
    return ContentKind.RECORDS if is_record else ContentKind.FOLDER


def _kind_of_file(path: Path) -> ContentKind:
    with open_file(path) as file:
        start = file.read(8)
    suffix = path.suffix.lower().removeprefix(".")
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return _SUFFIXES.get(suffix, kind)
    return ContentKind.YAML if suffix in ("yaml", "yml") else ContentKind.FILE
