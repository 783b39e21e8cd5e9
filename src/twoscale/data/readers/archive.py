"""A file or folder of arrays, opened for reading: what every reader gives."""

from __future__ import annotations

from abc import ABC, abstractmethod

from twoscale.data.readers.base import StoredArray
from twoscale.data.readers.pieces import Pieces

Found = StoredArray | Pieces


class Archive(ABC):
    """A file of several arrays, opened for reading."""

    single = False
    """Whether it holds one array, which is named by the file."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the arrays, or of the first ones of very many."""

    @abstractmethod
    def array(self, name: str) -> Found | None:
        """Return one of the arrays; None if there is none of this name."""

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of an array without reading it; None if there is none."""
        found = self.array(name)
        return None if found is None else tuple(found.shape)

    def axes(self, name: str) -> tuple[str, ...] | None:
        """Return the names that the file gives to an array's axes, if it does."""
        return None

    def periodic(self) -> tuple[bool, bool] | None:
        """Return which axes of the fields wrap, if the file says so."""
        return None


class SingleArchive(Archive):
    """One array, named by its file."""

    single = True

    def __init__(self, name: str, array: StoredArray, axes: tuple[str, ...] | None = None) -> None:
        self._name = name
        self._array = array
        self._axes = axes

    def names(self) -> list[str]:
        return [self._name]

    def array(self, name: str) -> Found | None:
        return self._array if name == self._name else None

    def axes(self, name: str) -> tuple[str, ...] | None:
        return self._axes
