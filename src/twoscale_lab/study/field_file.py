"""The npz file of a study's fields: arrays by name, such as `place/prediction/case`."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from twoscale.data.readers.npz import open_npz
from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output, open_file

Fields = dict[str, np.ndarray]

_LARGEST = 10**9  # bytes of all arrays; those of a study of the paper have 10**7
_NUMBERS = "biuf"  # kinds of arrays: booleans, whole numbers, floats


def read_fields(file: Path) -> Fields:
    """Return the fields in a file, an empty mapping if there is no file."""
    if not file.exists():
        return {}
    open_file(file).close()  # raises for a folder or a pipe
    try:
        with open_npz(file) as stored:
            members = stored.archive.infolist()
            if sum(member.file_size for member in members) > _LARGEST:  # before unpacking
                raise ValueError("it is too large")
            fields = {name: stored.values(name) for name in stored.names()}
            if len(fields) < len(members):
                raise ValueError("it holds something else than arrays")
        for name, values in fields.items():
            _check(name, values)
    except Exception as error:  # on broken files NumPy and zipfile raise many kinds of errors
        raise TwoscaleError(f"{file} is damaged: remove it and run the study again") from error
    return fields


def _check(name: str, values: np.ndarray) -> None:
    """Raise unless `values` are numbers; the array of a sample is one finite number."""
    if values.dtype.kind not in _NUMBERS:
        raise TypeError(f"{name} is no array of numbers")
    if name.endswith("/sample") and not (values.size == 1 and math.isfinite(values.item())):
        raise ValueError(f"{name} is not one number")


def write_field_file(file: Path, fields: Fields) -> None:
    """Write the fields of a study in one step."""
    with atomic_output(file, overwrite=True) as prepared, prepared.open("wb") as stream:
        np.savez_compressed(stream, **fields)  # type: ignore[arg-type]
