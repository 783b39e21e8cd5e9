"""Arrays in MATLAB files of versions 5 to 7, parsed here: SciPy's parser crashes on damaged ones.

The format: https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf. A file is a header of
128 bytes and then elements, one for each variable: plain, or packed by zlib. An element is a tag of
type and size, and its content; that of a variable is again elements: flags, shape, name, values.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import numpy as np

from twoscale.data.readers.archive import ArrayArchive, read_exactly, read_values, reading
from twoscale.errors import TwoscaleError
from twoscale.fields.arrays import NO_COMPLEX
from twoscale.files import open_file
from twoscale.runtime.memory import require_memory

_HEADER = 128
_MATRIX, _PACKED = 14, 15  # types of elements
_VALUES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
_VALUES |= {13: "u8"}
_OTHERS = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function"}
_NUMBERS = range(6, 16)  # classes of variables: double, single and whole numbers
_COMPLEX = 0x800
_LONGEST = 1024  # bytes of a name or a shape
_MOST = 10_000  # variables


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class _Variable:
    """A variable and where its values are: `start` bytes into the file, or into what is packed."""

    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    dtype: np.dtype
    stored: int
    start: int
    packed: tuple[int, int] | None  # where in the file, how many bytes


@contextmanager
def open_mat(file: Path) -> Iterator[ArrayArchive]:
    """Give the arrays of a MAT file."""
    with open_file(file) as handle:
        with reading(file):
            parsed = _MatFile(file, handle)
        yield ArrayArchive(parsed.variables, opened=parsed.values)


class _MatFile:
    """The variables of a MAT file, by name."""

    def __init__(self, file: Path, handle: BinaryIO) -> None:
        self.file = file
        self.handle = handle
        start = handle.read(_HEADER)
        orders: dict[bytes, Literal["little", "big"]] = {b"IM": "little", b"MI": "big"}
        if len(start) < _HEADER or start[126:] not in orders:
            raise ValueError("it has not the header of a MAT file of version 5 or later")
        self.order = orders[start[126:]]
        self.variables = dict(self._scan())

    def values(self, name: str, variable: _Variable) -> np.ndarray:
        """Return the values of a variable: mapped, or in memory if they are packed."""
        self._refuse_unusual(name, variable)
        count = math.prod(variable.shape)
        if variable.stored != count * variable.dtype.itemsize:
            claim = f"'{name}' claims the shape {variable.shape} and {variable.stored} bytes"
            raise TwoscaleError(f"{self.file} is damaged: {claim}")
        values: np.ndarray
        if variable.packed is None:
            values = np.memmap(self.handle, variable.dtype, "r", variable.start, (count,))
        else:
            advice = "save it with MATLAB's option -v7.3, which is read in parts"
            require_memory(f"'{name}' of {self.file}", variable.stored, advice)
            stream = _Unpacked(self.handle, *variable.packed)
            read_exactly(stream, variable.start)
            values = read_values(stream, variable.stored).view(variable.dtype)
            stream.read(8)  # padding at most; zlib verifies its checksum at the end
            if not stream.inflater.eof:
                raise ValueError("it is packed in a damaged way")
        return values.reshape(variable.shape, order="F")

    def _refuse_unusual(self, name: str, variable: _Variable) -> None:
        subject = f"'{name}' of {self.file}"
        if variable.kind not in _NUMBERS:
            kind = _OTHERS.get(variable.kind, "another class")
            raise TwoscaleError(f"{subject} is a MATLAB {kind}: give an array of numbers")
        if variable.is_complex:
            raise TwoscaleError(f"{subject} is complex, fields must be real numbers: {NO_COMPLEX}")
        if min(variable.shape, default=0) < 1:
            raise TwoscaleError(f"{subject} is without values: its shape is {variable.shape}")

    def _scan(self) -> Iterator[tuple[str, _Variable]]:
        """Yield the variables by name; no values are read."""
        end = self.handle.seek(0, 2)
        place = _HEADER
        for _ in range(_MOST):
            if place >= end:
                return
            self.handle.seek(place)
            kind, size, inline = self._tag(self.handle)
            if inline is not None or place + 8 + size > end:
                raise ValueError("it ends too early")
            if kind == _MATRIX:
                yield self._describe(self.handle, place + 8, None)
            elif kind == _PACKED:
                packed = place + 8, size
                inner = _Unpacked(self.handle, *packed)
                if self._tag(inner)[0] != _MATRIX:
                    raise ValueError("it has packed content that is no variable")
                yield self._describe(inner, 8, packed)
            else:
                raise ValueError(f"it has an element of type {kind}")
            place += 8 + size
        raise ValueError(f"it has more than {_MOST} variables")

    def _tag(self, stream: _Stream) -> tuple[int, int, bytes | None]:
        """Return an element's type and size, and its content where that is inside of the tag."""
        tag = read_exactly(stream, 8)
        first = int.from_bytes(tag[:4], self.order)
        if first >> 16:
            if first >> 16 > 4:
                raise ValueError("it has a damaged element")
            return first & 0xFFFF, first >> 16, tag[4 : 4 + (first >> 16)]
        return first, int.from_bytes(tag[4:], self.order), None

    def _describe(
        self, stream: _Stream, start: int, packed: tuple[int, int] | None
    ) -> tuple[str, _Variable]:
        """Return the name and the description of a variable whose content begins at `start`."""
        parts = []
        for _ in ("flags", "shape", "name"):
            _, size, inline = self._tag(stream)
            if size > _LONGEST:
                raise ValueError(f"it has a name or a shape of {size} bytes")
            padding = 0 if inline is not None else -size % 8
            parts.append(read_exactly(stream, size + padding)[:size] if inline is None else inline)
            start += 8 if inline is not None else 8 + size + padding
        flags = int.from_bytes(parts[0][:4], self.order)
        starts = range(0, len(parts[1]) // 4 * 4, 4)
        shape = tuple(int.from_bytes(parts[1][k : k + 4], self.order, signed=True) for k in starts)
        kind, dtype, stored = flags & 0xFF, np.dtype(np.uint8), 0
        if kind in _NUMBERS:
            code, stored, inline = self._tag(stream)
            if code not in _VALUES:
                raise ValueError(f"it has values of type {code}")
            dtype = np.dtype(_VALUES[code]).newbyteorder(self.order)
            start += 4 if inline is not None else 8
        name = parts[2].decode("latin1")
        is_complex = bool(flags & _COMPLEX)
        return name, _Variable(kind, is_complex, shape, dtype, stored, start, packed)


class _Unpacked:
    """What is packed at some place of a file, unpacked as it is read."""

    def __init__(self, handle: BinaryIO, start: int, size: int) -> None:
        self.handle = handle
        self.place = start
        self.end = start + size
        self.inflater = zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        content = b""
        while len(content) < size and not self.inflater.eof:
            packed = self.inflater.unconsumed_tail
            if not packed:
                self.handle.seek(self.place)
                packed = self.handle.read(min(2**16, self.end - self.place))
                self.place += len(packed)
            piece = self.inflater.decompress(packed, size - len(content))
            if not piece and not packed:
                break
            content += piece
        return content
