"""Arrays in HDF5 files: only what the file itself holds, all of it written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.readers.archive import (
    Archive,
    Axes,
    Found,
    Pieces,
    natural,
    reading,
    reversed_axes,
)
from twoscale.data.readers.hdf5_layouts import known_array, known_axes, periodic_axes
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


class Hdf5Archive(Archive):
    """The arrays of an HDF5 file, by their paths inside of it."""

    def __init__(self, file: Path, handle: Any, size: int) -> None:
        self.file = file
        self.handle = handle
        self.size = size
        self._located: dict[str, list[str]] = {}

    def names(self) -> list[str]:
        """Return the paths of arrays; of one group per sample, those inside of the first."""
        found: list[str] = []
        numbered = self._numbered("")
        if len(numbered) > 1 and len(numbered) == len(self.handle):
            self._collect(self.handle[numbered[0]], "", found, set())
        else:
            self._collect(self.handle, "", found, set())
        return found

    def _collect(
        self, group: Any, prefix: str, found: list[str], seen: set[int], *, strict: bool = False
    ) -> None:
        """Add the arrays below a group; a group that holds itself is visited once.

        `strict`: look at all of them, and raise at a link to another file.
        """
        address = h5py.h5o.get_info(group.id).addr
        if address in seen or prefix.count("/") > _DEPTH_LIMIT:
            return
        seen.add(address)
        for name in group:
            if len(found) == _NAMES_LIMIT and not strict:
                return
            kind = _link_type(group, name)
            if strict and kind not in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT):
                raise self._other_file(prefix + name)
            if kind != h5py.h5l.TYPE_HARD:
                continue
            item = group[name]
            if isinstance(item, h5py.Dataset):
                found.append(prefix + name)
            elif isinstance(item, h5py.Group):
                self._collect(item, f"{prefix}{name}/", found, seen, strict=strict)

    def array(self, name: str) -> Found | None:
        paths = self._paths(name)
        if not paths:
            return None
        found = [self._dataset(path) for path in paths]
        if len(found) == 1:
            return known_array(self.handle, paths[0], found[0])
        return Pieces(
            name,
            [partial(nullcontext, one) for one in found],  # of a file that stays open
            [f"'{path}'" for path in paths],
            [tuple(one.shape) for one in found],
            np.result_type(*(one.dtype for one in found)),
        )

    def axes(self, name: str) -> Axes | None:
        paths = self._paths(name)
        if not paths or self.file.suffix == ".mat":
            return None
        return known_axes(self.handle, paths[0], self._find(paths[0]))

    def periodic(self) -> tuple[bool, bool] | None:
        return periodic_axes(self.handle)

    def refuse_links(self) -> None:
        """Raise if any group holds a link to another file: other libraries would follow it."""
        self._collect(self.handle, "", [], set(), strict=True)

    def _paths(self, name: str) -> list[str]:
        if name not in self._located:
            self._located[name] = self._locate(name)
        return self._located[name]

    def _locate(self, name: str) -> list[str]:
        """Return where an array is: at its own path, in the one group that has it, or in many.

        Many groups are the samples of one array: groups that are named by numbers, such as 0000.
        """
        if isinstance(self._find(name), h5py.Dataset):
            return [name]
        groups = [""] + [f"{one}/" for one in self._groups("")]
        within = [f"{group}{name}" for group in groups if self._is_array(f"{group}{name}")]
        if len(within) == 1:
            return within
        for group in groups:
            numbered = self._numbered(group.rstrip("/"))
            found = [f"{group}{one}/{name}" for one in numbered]
            if len(numbered) > 1 and self._is_array(found[0]):
                self._require_all(name, found)
                return found
        return []

    def _require_all(self, name: str, paths: list[str]) -> None:
        missing = [path for path in paths if not self._is_array(path)]
        if missing:
            raise TwoscaleError(
                f"{self.file} has '{paths[0]}' but no '{missing[0]}': '{name}' must be in every "
                f"one of its {len(paths)} numbered groups"
            )

    def _is_array(self, path: str) -> bool:
        return isinstance(self._find(path), h5py.Dataset)

    def _groups(self, path: str) -> list[str]:
        """Return the names of the groups inside of a group; links are left out."""
        group = self._find(path)
        if not isinstance(group, h5py.Group):
            return []
        return [
            one
            for one in group
            if _link_type(group, one) == h5py.h5l.TYPE_HARD
            and group.get(one, getclass=True) is h5py.Group
        ]

    def _numbered(self, path: str) -> list[str]:
        """Return the groups that are named by numbers: 0000, 0001, … or sample_1, sample_2, …"""
        groups = self._groups(path)
        found = [one for one in groups if re.fullmatch(r"\D*\d+", one)]
        if len({one.rstrip("0123456789") for one in found}) > 1:
            return []
        return sorted(found, key=natural)

    def _dataset(self, path: str) -> Any:
        """Return an array at its path, checked, with the axes of the program that wrote it."""
        item = self._find(path)
        self._refuse_elsewhere(path, item)
        if item.dtype.kind in "fiub":  # what is no number is refused by the caller
            self._refuse_unwritten(path, item)
        # MATLAB's v7.3 files store axes in reverse, which is undone.
        return reversed_axes(item) if self.file.suffix == ".mat" else item

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
                raise self._other_file(name)
            item = item[step]
        return item

    def _other_file(self, name: str) -> TwoscaleError:
        return TwoscaleError(
            f"'{name}' of {self.file} is a link to another file, which is not followed: give that "
            f"file, or {_ONE_FILE}"
        )

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
