"""Npy files with headers that lie, and values that are no fields."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from faults.hostile.reading import ODD, odd_file, read
from faults.trials import Place, Trial

_DIGITS = "9" * 5000
_PREDICT = ("predict", "small-run", "x.npy", "--out", "result.npy")
_PARAMETERS = ("predict", "mixed-run", "mixed.npy", "--parameters", "x.npy", "--out", "result.npy")
_IMPORT = ("import", "x.npy", "u.npy", "--out", "result.zarr")


_READERS = (
    (_PREDICT, ("small-run",)),
    (_PARAMETERS, ("mixed-run", "mixed.npy")),
    (_IMPORT, ("u.npy",)),
)


def _header(shape: str, kind: str = "'<f4'") -> str:
    return f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}"


HEADERS: dict[str, str] = {
    "a negative size": _header("(-5, 16, 16)"),
    "three negative sizes": _header("(-5, -16, 16)"),
    "a huge size": _header("(10**12, 16, 16)"),
    "a size beyond 64 bits": _header(f"({2**70}, 1, 1)"),
    "sizes that overflow": _header(f"({2**32}, {2**32}, 4)"),
    "a size of 5000 digits": _header(f"({_DIGITS}, 16, 16)"),
    "a size that is no integer": _header("(5.0, 16, 16)"),
    "a true size": _header("(True, 16, 16)"),
    "no shape": "{'descr': '<f4', 'fortran_order': False}",
    "a shape that is no tuple": _header("16"),
    "one key more": "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 16, 16), 'x': 1}",
    "objects": _header("(5, 16, 16)", "'|O'"),
    "an unknown type": _header("(5, 16, 16)", "'<f99'"),
    "a type that is a number": _header("(5, 16, 16)", "7"),
    "a huge text type": _header("(5, 16, 16)", "'<U999999999'"),
    "records": _header("(5, 16, 16)", "[('a', '<f4')]"),
    "code": "__import__('os').system('touch executed')",
    "a call": "{'descr': '<f4', 'fortran_order': False, 'shape': tuple([5, 16, 16])}",
    "deep nesting": "(" * 9000 + ")" * 9000,
    "very deep nesting": "[" * 60000,
    "a long sum": _header("(" + "+1" * 9000 + ", 16, 16)"),
    "noise": "\x00\x01 \x02",
    "nothing": "",
}


def write_npy(path: Path, header: str, *, data: bytes = bytes(5 * 16 * 16 * 4)) -> None:
    """Write an npy file of version 2 with any header."""
    text = header.encode("latin1") + b"\n"
    path.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + data)


def _values(array: np.ndarray) -> Callable[[Path], None]:
    return lambda path: np.save(path, array, allow_pickle=True)


def _raw(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


_ONES = np.ones((5, 16, 16), np.float32)
VALUES: dict[str, Callable[[Path], object]] = {
    "NaN": _values(np.where(np.eye(16, dtype=bool), np.nan, _ONES)),
    "infinity": _values(_ONES * np.inf),
    "values beyond float32": _values(_ONES.astype(np.float64) * 1e200),
    "complex numbers": _values(_ONES * 1j),
    "texts": _values(np.full((5, 16, 16), "1.0")),
    "pickled objects": _values(np.full((5, 16, 16), None)),
    "dates": _values(np.zeros((5, 16, 16), "datetime64[s]")),
    "no samples": _values(_ONES[:0]),
    "no nodes": _values(_ONES[:, :0]),
    "a single number": _values(np.array(1, np.float32)),
    "five axes": _values(_ONES[None, None]),
    "six axes": _values(_ONES[None, None, None]),
    "one axis": _values(_ONES[:, 0, 0]),
    "two channels": _values(np.ones((5, 2, 16, 16), np.float32)),
    "a million channels": _values(np.ones((1, 10**6, 1, 1), np.float32)),
    "another grid": _values(np.ones((5, 7, 9), np.float32)),
    "one node": _values(np.ones((5, 1, 1), np.float32)),
    "half of its data": _raw(b""),
    "a length that lies": _raw(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}"),
    "a version from the future": _raw(b"\x93NUMPY\x09\x00\x10\x00{}"),
    "a zip file's name": _raw(b"PK\x03\x04" + bytes(100)),
    "a pickle": _raw(b"\x80\x04cos\nsystem\n(S'touch executed'\ntR."),
}


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield each hostile array, for the commands that read arrays."""
    makers: dict[str, Callable[[Path], object]] = {
        **{f"header: {words}": partial(write_npy, header=text) for words, text in HEADERS.items()},
        **VALUES,
        **{kind: partial(odd_file, kind) for kind in ODD},
    }
    for words, make in makers.items():
        for command, needs in _READERS:
            shown = f"{' '.join(command[:2])}, npy: {words}"
            yield Trial(shown, partial(_read, make, command, needs))


def _read(
    make: Callable[[Path], object],
    words: tuple[str, ...],
    needs: tuple[str, ...],
    place: Place,
) -> str | None:
    return read(lambda _: make(place.path / "x.npy"), words, needs, place, harmless=False)
