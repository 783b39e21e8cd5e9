"""What every reader offers, and what they share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from twoscale.files.reading import parsing

_SHOWN = 20  # names of arrays in a sentence

Index = tuple[slice, ...]
"""One slice with a positive step for each axis."""


class StoredArray(Protocol):
    """An array in a file, of which parts can be read."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, index: Any, /) -> Any: ...


def reading(file: Path) -> AbstractContextManager[None]:
    """Turn whatever a library raises on a file's bytes into one sentence."""
    return parsing(file, "what its name says")


@contextmanager
def quietly() -> Iterator[None]:
    """Keep what libraries warn of to ourselves: they speak of files that users did not write."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_exactly(stream: Any, size: int) -> bytes:
    """Return the next bytes of a stream; raise if it has fewer."""
    content = stream.read(size)
    if len(content) != size:
        raise ValueError("it ends too early")
    return content


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence, the first of many."""
    shown = list(names)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) or "no arrays") + more


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts names by the numbers in them.

    >>> sorted(["s10", "s9", "a"], key=natural)
    ['a', 's9', 's10']
    """
    parts = re.split(r"(\d+)", name)
    return [(1, int(one), "") if one.isdecimal() else (0, 0, one) for one in parts]
