"""Arrays in npy files: what the header says is held against the file before anything is mapped."""

from __future__ import annotations

import io
import math
import os
import warnings
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from twoscale.errors import TwoscaleError
from twoscale.files.reading import open_file, parsing
from twoscale.runtime.memory import size_text

_HEADER_LIMIT = 2**16  # bytes; NumPy itself parses no more than 10,000
_ZIP_MAGIC = b"PK\x03\x04"
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""By version. (3, 0) is for named fields only."""


class NpyHeader(NamedTuple):
    """What the start of an npy file says about the array that follows at byte `offset`."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    offset: int

    @property
    def nbytes(self) -> int:
        """Return the bytes that the array's values take."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(file: IO[bytes]) -> NpyHeader:
    """Read the header of an array of plain numbers, or raise a ValueError; values are not read."""
    start = io.BytesIO(file.read(_HEADER_LIMIT))
    version = npy.read_magic(start)
    if version not in _READERS:
        raise ValueError(f"its version {version} is not that of an array of numbers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on headers of Python 2, which are fine
        shape, fortran, dtype = _READERS[version](start)
    file.seek(start.tell())
    if dtype.hasobject or dtype.names or dtype.subdtype or not dtype.itemsize:
        raise ValueError(f"its values are of type {dtype}, not plain numbers")
    if any(isinstance(side, bool) or side < 0 for side in shape):
        raise ValueError(f"its header claims the shape {shape}")
    return NpyHeader(shape, fortran, dtype, start.tell())


def open_npy(path: Path) -> np.ndarray:
    """Return the array an npy file holds, mapped: values are read from disk as they are used."""
    with open_file(path) as file:
        if file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC:
            raise TwoscaleError(f"{path} holds several arrays: give an npy file with one")
        file.seek(0)
        with parsing(path, "a readable npy file"):
            header = read_npy_header(file)
            size = os.fstat(file.fileno()).st_size - header.offset
            if header.nbytes != size:
                raise ValueError(
                    f"its header claims {size_text(header.nbytes)} of values, it has "
                    f"{size_text(size)}"
                )
            if not size:
                raise TwoscaleError(f"{path} holds an array without values: {header.shape}")
            flat: np.ndarray = np.memmap(file, header.dtype, "r", header.offset)
            return flat.reshape(header.shape, order="F" if header.fortran else "C")
