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
    FoundArray,
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
_ONE_FILE = "copy its values into one file first, where all of its sources are there"


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

    def names(self) -> list[str]:
        """Return the paths of arrays; of one group per sample, those inside of the first."""
        names: list[str] = []
        numbered = self._numbered("")
        samples = len(numbered) > 1 and len(numbered) == len(self.handle)
        self._collect(self.handle[numbered[0]] if samples else self.handle, "", names, set())
        return names

    def _collect(
        self, group: Any, prefix: str, names: list[str], seen: set[int], *, strict: bool = False
    ) -> None:
        """Add the arrays below a group; a group that holds itself is visited once.

        `strict`: look at all of them, and raise at a link to another file.
        """
        address = h5py.h5o.get_info(group.id).addr
        if address in seen or prefix.count("/") > _DEPTH_LIMIT:
            return
        seen.add(address)
        for name in group:
            if len(names) == _NAMES_LIMIT and not strict:
                return
            kind = _link_type(group, name)
            if strict and kind not in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT):
                raise self._other_file(prefix + name)
            if kind != h5py.h5l.TYPE_HARD:
                continue
            item = group[name]
            if isinstance(item, h5py.Dataset):
                names.append(prefix + name)
            elif isinstance(item, h5py.Group):
                self._collect(item, f"{prefix}{name}/", names, seen, strict=strict)

    def find(self, name: str) -> FoundArray | None:
        paths = self._locate(name)
        if not paths:
            return None
        arrays = [self._dataset(path) for path in paths]
        axes = None
        if self.file.suffix != ".mat":
            axes = known_axes(self.handle, paths[0], self._find(paths[0]))
        if len(arrays) == 1:
            return FoundArray(known_array(self.handle, paths[0], arrays[0]), axes)
        # Of a file that stays open.
        openers = [partial(nullcontext, FoundArray(one)) for one in arrays]
        shapes = [tuple(one.shape) for one in arrays]
        dtype = np.result_type(*(one.dtype for one in arrays))
        labels = [f"'{path}'" for path in paths]
        return FoundArray(Pieces(name, openers, labels, shapes, dtype), axes)

    def periodic(self) -> tuple[bool, bool] | None:
        return periodic_axes(self.handle)

    def refuse_links(self) -> None:
        """Raise if any group holds a link to another file: other libraries would follow it."""
        self._collect(self.handle, "", [], set(), strict=True)

    def _locate(self, name: str) -> list[str]:
        """Return where an array is: at its own path, in the one group that has it, or in many.

        Many groups are the samples of one array: groups that are named by numbers, such as 0000.
        """
        if self._is_array(name):
            return [name]
        groups = ["", *(f"{one}/" for one in self._groups(""))]
        within = [f"{group}{name}" for group in groups if self._is_array(f"{group}{name}")]
        if len(within) == 1:
            return within
        for group in groups:
            paths = [f"{group}{one}/{name}" for one in self._numbered(group.rstrip("/"))]
            if len(paths) < 2 or not self._is_array(paths[0]):
                continue
            if missing := [path for path in paths if not self._is_array(path)]:
                raise TwoscaleError(
                    f"{self.file} has '{paths[0]}' but no '{missing[0]}': '{name}' must be in "
                    f"every one of its {len(paths)} numbered groups"
                )
            return paths
        return []

    def _is_array(self, path: str) -> bool:
        return isinstance(self._find(path), h5py.Dataset)

    def _groups(self, path: str) -> list[str]:
        """Return the names of the groups inside of a group; links are left out."""
        group = self._find(path)
        if not isinstance(group, h5py.Group):
            return []
        hard = [one for one in group if _link_type(group, one) == h5py.h5l.TYPE_HARD]
        return [one for one in hard if group.get(one, getclass=True) is h5py.Group]

    def _numbered(self, path: str) -> list[str]:
        """Return the groups that are named by numbers: 0000, 0001, … or sample_1, sample_2, …"""
        numbered = [one for one in self._groups(path) if re.fullmatch(r"\D*\d+", one)]
        if len({one.rstrip("0123456789") for one in numbered}) > 1:
            return []
        return sorted(numbered, key=natural)

    def _dataset(self, path: str) -> Any:
        """Return an array at its path, checked, with the axes of the program that wrote it."""
        item, subject = self._find(path), f"'{path}' of {self.file}"
        elsewhere = ""
        if item.is_virtual:
            elsewhere = "is a virtual dataset, made up from other arrays"
        elif item.id.get_create_plist().get_external_count():
            elsewhere = "keeps its values in other files, which are not read"
        if elsewhere:
            raise TwoscaleError(f"{subject} {elsewhere}: {_ONE_FILE}")
        if item.dtype.kind in "fiub":  # what is no number is refused by the caller
            self._refuse_unwritten(subject, item)
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
                text = f"'{name}' of {self.file} is a link: give the array's own name, '{target}'"
                raise TwoscaleError(text)
            if kind != h5py.h5l.TYPE_HARD:
                raise self._other_file(name)
            item = item[step]
        return item

    def _other_file(self, name: str) -> TwoscaleError:
        where = "a link to another file, which is not followed"
        return TwoscaleError(f"'{name}' of {self.file} is {where}: give that file, or {_ONE_FILE}")

    def _refuse_unwritten(self, subject: str, item: Any) -> None:
        """Refuse an array that was not written, or in part: HDF5 reads zeros in its place."""
        if not item.size:  # None where there is no dataspace
            raise TwoscaleError(f"{subject} is without values: its shape is {item.shape}")
        stored = item.id.get_storage_size()
        if item.chunks:
            written = item.id.get_num_chunks()
            pairs = zip(item.shape, item.chunks, strict=True)
            chunks = math.prod(-(-side // length) for side, length in pairs)
            if written != chunks:
                there = f"{written} of its {chunks} chunks are there"
                raise TwoscaleError(f"{subject} was not completely written: {there}")
            needed = math.prod(item.chunks) * item.dtype.itemsize
            require_memory(f"one chunk of {subject}", needed, "use smaller ones (h5repack -l)")
        elif stored != item.size * item.id.get_type().get_size():
            raise TwoscaleError(f"{subject} was never written: it takes {stored} bytes in the file")
        if stored + (item.id.get_offset() or 0) > self.size:
            raise TwoscaleError(f"{subject} is damaged: it claims more bytes than the file has")


def _link_type(group: Any, name: str) -> int:
    return group.id.links.get_info(name.encode()).type
