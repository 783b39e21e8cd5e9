"""What every reader offers, and what they share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from twoscale.files import parsing

NO_COMPLEX = "give the real and the imaginary part as two channels"


class StoredArray(Protocol):
    """An array in a file. Samples are read in order: each slice starts where the last one ended."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, part: slice) -> Any: ...


class Archive(Protocol):
    """A file of several arrays, opened for reading."""

    def names(self) -> list[str]:
        """Return the names of the arrays, or of the first ones of very many."""
        ...

    def array(self, name: str) -> StoredArray | None:
        """Return one of the arrays; None if there is none of this name."""
        ...


def reading(file: Path) -> AbstractContextManager[None]:
    """Turn whatever a library raises on a file's bytes into one sentence."""
    return parsing(file, "what its name says")
