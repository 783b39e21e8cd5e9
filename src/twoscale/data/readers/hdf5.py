"""Arrays in HDF5 files: only what the file itself holds, all of it written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.readers.base import StoredArray, reading
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import open_file
from twoscale.runtime.memory import require_memory

try:
    import h5py
except ImportError as error:
    raise missing_extra("h5py", "data") from error

_NAMES_LIMIT = 100  # arrays named to a user who has to choose
_DEPTH_LIMIT = 32  # groups within groups that are looked into for names
_ONE_FILE = "copy its values into one file first, for example with h5py"


@contextmanager
def open_hdf5(file: Path) -> Iterator[Hdf5Archive]:
    """Give the arrays of an HDF5 file."""
    with open_file(file) as opened:
        size = opened.seek(0, 2)
    with reading(file):
        handle = h5py.File(file, "r")
    try:
        yield Hdf5Archive(file, handle, size)
    finally:
        with reading(file):
            handle.close()


class Hdf5Archive:
    """The arrays of an HDF5 file, by their paths inside of it."""

    def __init__(self, file: Path, handle: Any, size: int) -> None:
        self.file = file
        self.handle = handle
        self.size = size

    def names(self) -> list[str]:
        found: list[str] = []
        self._collect(self.handle, "", found, set())
        return found

    def _collect(self, group: Any, prefix: str, found: list[str], seen: set[int]) -> None:
        """Add the arrays below a group; a group that holds itself is visited once."""
        address = h5py.h5o.get_info(group.id).addr
        if address in seen or prefix.count("/") > _DEPTH_LIMIT:
            return
        seen.add(address)
        for name in group:
            if len(found) == _NAMES_LIMIT:
                return
            if _link_type(group, name) != h5py.h5l.TYPE_HARD:
                continue
            item = group[name]
            if isinstance(item, h5py.Dataset):
                found.append(prefix + name)
            elif isinstance(item, h5py.Group):
                self._collect(item, f"{prefix}{name}/", found, seen)

    def array(self, name: str) -> StoredArray | None:
        item = self._find(name)
        if not isinstance(item, h5py.Dataset):
            return None
        self._refuse_elsewhere(name, item)
        if item.dtype.kind in "fiub":  # what is no number is refused by the caller
            self._refuse_unwritten(name, item)
        # MATLAB's v7.3 files store axes in reverse, which is undone.
        return ReversedArray(item) if self.file.suffix == ".mat" else item

    def _find(self, name: str) -> Any:
        """Return what is at a path, step by step, so that no link is followed."""
        item = self.handle
        for step in name.split("/"):
            if step in ("", "."):
                continue
            if not isinstance(item, h5py.Group) or not item.id.links.exists(step.encode()):
                return None
            kind = _link_type(item, step)
            if kind == h5py.h5l.TYPE_SOFT:
                target = item.id.links.get_val(step.encode()).decode(errors="replace")
                raise TwoscaleError(
                    f"'{name}' of {self.file} is a link: give the array's own name, '{target}'"
                )
            if kind != h5py.h5l.TYPE_HARD:
                raise TwoscaleError(
                    f"'{name}' of {self.file} is a link to another file, which is not followed: "
                    f"give that file, or {_ONE_FILE}"
                )
            item = item[step]
        return item

    def _refuse_elsewhere(self, name: str, item: Any) -> None:
        if item.is_virtual:
            raise TwoscaleError(
                f"'{name}' of {self.file} is a virtual dataset, made up from other arrays: "
                f"{_ONE_FILE}, where all of its sources are there"
            )
        if item.id.get_create_plist().get_external_count():
            raise TwoscaleError(
                f"'{name}' of {self.file} keeps its values in other files, which are not read: "
                f"{_ONE_FILE}"
            )

    def _refuse_unwritten(self, name: str, item: Any) -> None:
        """Refuse an array that was not written, or in part: HDF5 reads zeros in its place."""
        subject = f"'{name}' of {self.file}"
        if not item.size:  # None where there is no dataspace
            raise TwoscaleError(f"{subject} is without values: its shape is {item.shape}")
        stored = item.id.get_storage_size()
        if item.chunks:
            written = item.id.get_num_chunks()
            pairs = zip(item.shape, item.chunks, strict=True)
            chunks = math.prod(-(-side // length) for side, length in pairs)
            if written != chunks:
                raise TwoscaleError(
                    f"{subject} was not completely written: {written} of its {chunks} chunks are "
                    "there"
                )
            needed = math.prod(item.chunks) * item.dtype.itemsize
            require_memory(f"one chunk of {subject}", needed, "use smaller ones (h5repack -l)")
        elif stored != item.size * item.id.get_type().get_size():
            raise TwoscaleError(f"{subject} was never written: it takes {stored} bytes in the file")
        if stored + (item.id.get_offset() or 0) > self.size:
            raise TwoscaleError(f"{self.file} is damaged: '{name}' claims more than the file has")


def _link_type(group: Any, name: str) -> int:
    return group.id.links.get_info(name.encode()).type


class ReversedArray:
    """A stored array seen with its axes in reverse, read slice by slice."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape[::-1]

    def __getitem__(self, part: slice) -> np.ndarray:
        return np.asarray(self.array[..., part]).T
