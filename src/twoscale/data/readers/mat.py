"""Arrays in MATLAB files before version 7.3, which are read as a whole."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from scipy.io import loadmat, whosmat

from twoscale.data.readers.base import StoredArray, reading, require_memory
from twoscale.errors import TwoscaleError
from twoscale.files import open_file

_NUMBERS = {"double": 8, "single": 4, "logical": 1} | {
    f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""Bytes of a value, by MATLAB's class."""


@contextmanager
def open_mat(file: Path) -> Iterator[MatArchive]:
    """Give the arrays of a MAT file."""
    with open_file(file) as handle:
        with reading(file), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = MatArchive(file, handle)
        yield archive


class MatArchive:
    """The variables of a MAT file."""

    def __init__(self, file: Path, handle: BinaryIO) -> None:
        self.file = file
        self.handle = handle
        self.variables = {name: (shape, kind) for name, shape, kind in whosmat(handle)}

    def names(self) -> list[str]:
        return list(self.variables)

    def array(self, name: str) -> StoredArray | None:
        if name not in self.variables:
            return None
        shape, kind = self.variables[name]
        if kind not in _NUMBERS:
            raise TwoscaleError(
                f"'{name}' of {self.file} is of MATLAB's class {kind}: give an array of numbers"
            )
        if min(shape, default=0) < 1:
            raise TwoscaleError(f"'{name}' of {self.file} is without values: its shape is {shape}")
        # The stored values and the array made of them are held together.
        needed = 2 * math.prod(shape) * _NUMBERS[kind]
        advice = "save it with MATLAB's option -v7.3, which is read in parts"
        require_memory(f"'{name}' of {self.file}", needed, advice)
        self.handle.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return loadmat(self.handle, variable_names=[name])[name]
