"""Arrays in npz files, unpacked as they are read: nothing is held but the samples asked for."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from twoscale.data.readers.archive import (
    Archive,
    FoundArray,
    Index,
    read_exactly,
    read_values,
    reading,
)
from twoscale.errors import TwoscaleError
from twoscale.files import open_file
from twoscale.files.npy import NpyHeader, read_npy_header
from twoscale.runtime.memory import require_memory

_SUFFIX = ".npy"
_ENCRYPTED = 0x1  # a flag of a member of a zip file


@contextmanager
def open_npz(file: Path) -> Iterator[NpzArchive]:
    """Give the arrays of an npz file."""
    with open_file(file) as handle:
        with reading(file):
            archive = zipfile.ZipFile(handle)
        with archive:
            yield NpzArchive(file, archive)


class NpzArchive(Archive):
    """The members of an npz file whose names end in npy."""

    def __init__(self, file: Path, archive: zipfile.ZipFile) -> None:
        self.file = file
        self.archive = archive

    def names(self) -> list[str]:
        members = self.archive.namelist()
        return [name.removesuffix(_SUFFIX) for name in members if name.endswith(_SUFFIX)]

    def shape(self, name: str) -> tuple[int, ...] | None:
        opened = self._open(name)
        return None if opened is None else opened[2].shape

    def _open(self, name: str) -> tuple[zipfile.ZipInfo, IO[bytes], NpyHeader] | None:
        if name not in self.names():
            return None
        member = self.archive.getinfo(name + _SUFFIX)
        subject, advice = f"'{name}' of {self.file}", "write it with numpy.savez first"
        if member.flag_bits & _ENCRYPTED:
            raise TwoscaleError(f"{subject} is encrypted: {advice}")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise TwoscaleError(f"{subject} is compressed in another way than NumPy does: {advice}")
        stream = self.archive.open(member)
        return member, stream, read_npy_header(stream)

    def find(self, name: str) -> FoundArray | None:
        opened = self._open(name)
        if opened is None:
            return None
        member, stream, header = opened
        if header.offset + header.nbytes != member.file_size:
            claim = f"'{name}' claims the shape {header.shape} of {header.dtype}"
            raise TwoscaleError(f"{self.file} is damaged: {claim}, it has {member.file_size} bytes")
        if not header.fortran:
            return FoundArray(StreamedArray(stream, header))
        # In Fortran's order samples are spread over all of the bytes.
        advice = "save it in C order (numpy.ascontiguousarray), which is read in parts"
        require_memory(f"'{name}' of {self.file} in Fortran's order", header.nbytes, advice)
        values = read_values(stream, header.nbytes).view(header.dtype)
        _verify(stream)
        return FoundArray(values.reshape(header.shape, order="F"))

    def values(self, name: str) -> np.ndarray:
        """Return all of an array that is there."""
        found = self.find(name)
        assert found is not None
        array = found.array
        return array.whole() if isinstance(array, StreamedArray) else np.asarray(array)


class StreamedArray:
    """An array (samples, ...) unpacked as it is read; a single number is one sample.

    To read what lies before the last part, the array is unpacked again from its start.
    """

    def __init__(self, stream: IO[bytes], header: NpyHeader) -> None:
        self.shape = header.shape
        self.dtype = header.dtype
        self._samples = header.shape[0] if header.shape else 1
        self._stream = stream
        self._offset = header.offset
        self._next = 0

    def __getitem__(self, index: slice | Index) -> np.ndarray:
        if not index:
            return self.whole()
        first, *others = index if isinstance(index, tuple) else (index,)
        start, stop, step = first.indices(self._samples)
        return self._rows(start, stop)[(slice(None, None, step), *others)]

    def _rows(self, start: int, stop: int) -> np.ndarray:
        """Return consecutive samples."""
        inner = self.shape[1:]
        row = math.prod(inner) * self.dtype.itemsize
        if start != self._next:
            self._stream.seek(self._offset + start * row)
        values = np.frombuffer(read_exactly(self._stream, (stop - start) * row), self.dtype)
        self._next = stop
        if stop == self._samples:
            _verify(self._stream)
        return values.reshape(stop - start, *inner)

    def whole(self) -> np.ndarray:
        """Return the array as it was written."""
        return self._rows(0, self._samples).reshape(self.shape)


def _verify(stream: IO[bytes]) -> None:
    """Let the zip file's checksum be verified, which happens when its end is seen."""
    stream.read(1)
