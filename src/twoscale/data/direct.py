"""Files used as a dataset: fields are read from where they are, nothing is copied."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, TypeGuard

import numpy as np

from twoscale.data.chunking import Slices
from twoscale.data.description import (
    DESCRIPTION,
    describe,
    lost,
    may_be_dataset,
    reading_samples,
)
from twoscale.data.importing import Files, file_list
from twoscale.data.layouts import open_fields
from twoscale.data.places import URL, absent, place_of
from twoscale.data.readers.opening import is_array_file
from twoscale.data.reading import Reading
from twoscale.data.store import Dataset
from twoscale.errors import TwoscaleError
from twoscale.files import content_digest, open_file

_SAMPLED = 2**26  # bytes of all files that a digest reads
_BLOCK = 2**16


class FileDataset(Dataset):
    """Pairs of inputs and outputs in people's own files, with the interface of a dataset.

    Values are checked to be finite whenever they are read. The identity holds the files' sizes and
    contents: all of them up to 64 MiB, samples of larger ones.
    """

    has_checksums = False

    def __init__(self, files: Files, reading: Reading) -> None:
        self.files = file_list(files)
        self.path = self.files[0]
        self._cached = {}
        self._lock = Lock()
        self._opened = ExitStack()
        fields = self._opened.enter_context(open_fields(self.files, reading))
        self.reading = fields.reading
        self.layout = fields.layout()
        self._arrays = fields.stacks
        how, layout = self.reading.as_dict(), self.layout
        described = describe(layout, None, seed=None)
        self.metadata = described | {"chunk": layout.chunk, "reading": how}
        self.metadata["files"] = [str(file.resolve()) for file in self.files]
        counted: dict[str, Any] = {name: described[name] for name in ("input", "output", "samples")}
        counted["reading"] = how | {"axes": None}  # the orders that were found are `known`
        counted["files"] = files_digest(self.files)
        self.metadata["digest"] = content_digest(counted)

    @property
    def _workers(self) -> int:
        return 1  # the libraries behind the formats read one part at a time

    def read(
        self, name: str, start: int, stop: int, *, window: Slices = None, verify: bool = True
    ) -> np.ndarray:
        """Return consecutive samples of an array, with the axes a dataset would have.

        `verify`: raise if values are not finite. A `window` is cut out of whole fields.
        """
        stack, part = self._array(name), self._window(name, window)
        with self._lock, reading_samples():
            values = stack.read(slice(start, stop), finite=verify)
        values = values.reshape(stop - start, *self.layout.sample_shapes[name])
        return values if part is None else values[(..., *part[-min(2, values.ndim - 1) :])]

    def intact(self, name: str, first: int, values: np.ndarray) -> bool:
        """Return true: files of others have no checksums of samples."""
        return True


@dataclass(frozen=True, eq=False)
class InputRows:
    """Fields (samples, channels, height, width), read as they are sliced.

    `opened` closes the files when the object goes.
    """

    shape: tuple[int, ...]
    read: Callable[[slice], np.ndarray]
    opened: ExitStack | None = None
    ndim: ClassVar[int] = 4

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> np.ndarray:
        start, stop, _ = part.indices(len(self))
        return self.read(slice(start, stop)).reshape(-1, *self.shape[1:])


StoredInputs = tuple[InputRows | None, np.ndarray | None]
"""Inputs to predict from, in a dataset or in files: fields, and parameters in memory."""


def dataset_inputs(dataset: Dataset, *, fields: bool = True) -> StoredInputs:
    """Return the inputs of a dataset."""
    samples, names = dataset.samples, dataset.arrays
    rows = None
    if fields and "input" in names:
        shape = (samples, *dataset.inner_shape("input"))
        rows = InputRows(shape, lambda part: dataset.read("input", part.start, part.stop))
    scalars = dataset.read("parameters", 0, samples) if "parameters" in names else None
    return rows, scalars


def file_inputs(files: Files, reading: Reading, *, fields: bool = True) -> StoredInputs:
    """Return the inputs in people's own files."""
    opened = ExitStack()
    roles = ("input", "parameters") if fields else ("parameters",)
    stacks = opened.enter_context(open_fields(file_list(files), reading, roles=roles)).stacks
    stack, scalars = stacks.get("input"), stacks.get("parameters")
    rows = None if stack is None else InputRows(stack.shape, stack.read, opened)
    return rows, None if scalars is None else scalars.scalars()


def open_data(files: Files, reading: Reading | None = None) -> Dataset:
    """Return a dataset, or files as one; `reading` says how files are to be read."""
    asked = reading or Reading()
    if not _is_one_dataset(files):
        return FileDataset(files, asked)
    if asked != Reading():
        advice = "drop the options that say how files are read"
        raise TwoscaleError(f"{files} is a dataset, whose arrays and axes are settled: {advice}")
    return _whole(files)


def open_with_test(
    files: Files, test: Files | None, reading: Reading
) -> tuple[Dataset, Dataset | None]:
    """Return data to fit on and data to test on; `reading` is for those of them that are files.

    A test file is read as the first file, but for a selection of samples, which is the first's.
    """
    if test is None:
        return open_data(files, reading), None
    for_test = Reading()
    if _is_one_dataset(files) and not _is_one_dataset(test):
        dataset, for_test = _whole(files), reading
    else:
        dataset = open_data(files, reading)
    if _is_one_dataset(test):
        return dataset, _whole(test)
    recorded = Reading.recorded_in(dataset.metadata)
    return dataset, FileDataset(test, recorded.for_other(for_test))


def reopen_data(record: Mapping[str, Any]) -> Dataset:
    """Return the data that a run's config names, stored or in files."""
    if "files" not in record:
        return _whole(record.get("path", ""))
    return FileDataset(record["files"], Reading.from_dict(record.get("reading")))


def _whole(path: str | Path) -> Dataset:
    """Return a dataset none of whose files is missing, however little of it will be read."""
    dataset = Dataset(path)
    shards = [
        f"{name}/{chunking.key(shard)}"
        for name, chunking in dataset.layout.chunkings.items()
        for shard in range(chunking.shards)
    ]
    missing = absent(dataset.path, shards)
    if missing:
        raise lost(dataset.path, missing[0], len(missing) - 1)
    return dataset


def _is_one_dataset(files: Files) -> TypeGuard[str | Path]:
    return isinstance(files, str | Path) and is_stored(files)


def is_stored(place: str | Path) -> bool:
    """Say whether a path is to be opened as a dataset; opening it finds what is wrong with it."""
    path = place_of(place)
    if isinstance(path, URL):
        return True
    if not os.path.lexists(path):
        return not (any(sign in str(path) for sign in "*?[") or is_array_file(path))
    if not path.is_dir():
        return False
    if may_be_dataset(path):
        return True
    described = (path / DESCRIPTION).exists()
    return not described and (not any(path.iterdir()) or (path / "manifest.json").exists())


def files_digest(paths: Sequence[Path]) -> str:
    """Return a digest of the names, sizes and contents of files and folders.

    Of files beyond 64 MiB in total, blocks spread over each are read.
    """
    files = [(path, file) for path in paths for file in _regular(path)]
    share = _SAMPLED // max(1, len(files))
    digest = hashlib.blake2b(digest_size=16)
    for path, file in files:
        with open_file(file) as handle:
            size = os.fstat(handle.fileno()).st_size
            digest.update(f"{file.relative_to(path.parent)} {size}\n".encode(errors="replace"))
            for place in _places(size, share):
                handle.seek(place)
                digest.update(handle.read(_BLOCK))
    return digest.hexdigest()


def _regular(path: Path) -> Iterable[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _places(size: int, share: int) -> Iterable[int]:
    """Return where blocks begin: all of a file, or as many as fit the share, first and last too."""
    if size <= share:
        return range(0, size, _BLOCK)
    starts = np.linspace(0, max(0, size - _BLOCK), max(2, share // _BLOCK))
    return [round(start) for start in starts]
