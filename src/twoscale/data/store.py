"""The dataset store: a Zarr group of arrays, chunked by sample, that describes itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from twoscale import problems
from twoscale.data.chunking import DTYPE, Slices, Window, checked_window, extent, moved
from twoscale.data.description import (
    DESCRIPTION,
    REPAIR,
    SIDES,
    Layout,
    layout_of,
    read_description,
    reading_samples,
    unreadable_data,
)
from twoscale.data.places import URL, Place, UnreachableStorageError, place_of
from twoscale.data.shards import Damaged, StoredChunks
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError, UnreachableDataError, UnreadableDataError
from twoscale.fields.source import (
    ArraySource,
    FieldSource,
    Shape,
    chunk_length,
    range_length,
    single_precision,
    slices,
)
from twoscale.fields.workers import HERE, Workers, on_device
from twoscale.problems import Problem
from twoscale.runtime.memory import release_memory, require_memory
from twoscale.runtime.threads import file_workers, prefetch

Indices = Sequence[int] | np.ndarray

_REQUESTS = 8  # to a storage service at once


class Dataset:
    """Pairs of inputs and outputs on disk or on a storage service, opened for reading.

    The arrays are `input`, `parameters` and `output`; one of the first two may be missing. `read`
    gives an array with the axes it was written with, `load` the same in memory as (samples,
    channels, height, width). The sides are `input` and `output`; `fields` and `load_fields` give
    a side as a source, in which parameters are the last channels of the input.
    """

    has_checksums = True  # of its samples
    dtype = DTYPE

    path: Place
    metadata: dict[str, Any]
    layout: Layout
    _arrays: Mapping[str, Any]
    _cached: dict[str, Tensor]

    def __init__(self, path: str | Place) -> None:
        self.path = place_of(path)
        self.metadata = read_description(self.path)
        self.layout = layout_of(self.metadata)
        self._cached = {}
        spaces = (self.input_space, self.output_space)
        room = 4 * min(self.chunk, self.samples) * sum(prod(space.shape) for space in spaces)
        require_memory(f"reading {self.path} in parts", room, "its fields are too large")
        try:
            self._arrays = {
                name: StoredChunks(self.path / name, chunking, self.metadata["checksums"][name])
                for name, chunking in self.layout.chunkings.items()
            }
        except UnreachableStorageError:
            raise
        except TwoscaleError as error:
            raise unreadable_data(f"{self.path} is damaged: {error}; {REPAIR}", error) from error

    def __reduce__(self) -> Any:
        """Return how another process opens the same dataset."""
        path = self.path if isinstance(self.path, URL) else self.path.resolve()
        return _reopened, (type(self), path, self.identity)

    @property
    def _workers(self) -> int:
        """Return how many threads read at once."""
        return _REQUESTS if isinstance(self.path, URL) else file_workers()

    @property
    def samples(self) -> int:
        return self.layout.samples

    @property
    def input_space(self) -> Space:
        """Return what inputs are made of; parameters are the last channels."""
        return self.layout.input.space

    @property
    def output_space(self) -> Space:
        return self.layout.output.space

    @property
    def ranks(self) -> tuple[int, int]:
        """Return the numbers of axes with which inputs and outputs came in; 0 for no fields."""
        return self.layout.input.rank or 0, self.layout.output.rank or 0

    @property
    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays there are."""
        return tuple(self.layout.sample_shapes)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all arrays in memory."""
        return self.samples * self.layout.sample_bytes

    @property
    def problem(self) -> Problem | None:
        """Return the equation with its parameters; None if it is not known here."""
        described = self.metadata["problem"]
        return None if described is None else problems.problem_from(described)

    @property
    def identity(self) -> str:
        """Return a digest of everything the dataset holds: its fields and their description."""
        return str(self.metadata["digest"])[:16]

    @property
    def chunk(self) -> int:
        """Return the number of samples stored together."""
        return int(self.metadata["chunk"])

    def read(
        self, name: str, start: int, stop: int, *, window: Slices = None, verify: bool = True
    ) -> np.ndarray:
        """Return consecutive samples of an array, with the axes it was written with.

        With a `window`, its rows and columns, only this part of each field is returned. Every chunk
        that holds some of it is read, and held to its checksum.
        """
        array, part = self._array(name), self._window(name, window)
        try:
            with reading_samples():
                return array.read(start, stop, window=part, verify=verify)
        except Damaged as error:
            raise self._damaged(name, error.start, error.stop) from error

    def _window(self, name: str, window: Slices) -> Window | None:
        """Return a window of an array's grid with its bounds."""
        if window is None:
            return None
        if name == "parameters":
            raise TwoscaleError("parameters have no grid: read them without a window")
        _, height, width = self.inner_shape(name)
        return checked_window(window, (height, width))

    def _array(self, name: str) -> Any:
        if name not in self._arrays:
            names = ", ".join(f"'{one}'" for one in self._arrays)
            raise TwoscaleError(f"{self.path} has no array '{name}': it holds {names}")
        return self._arrays[name]

    def intact(self, name: str, first: int, values: np.ndarray) -> bool:
        """Say whether the chunks from sample `first` to its chunk's end are as they were written.

        `values` are those of whole samples.
        """
        array = self._array(name)
        chunks = array.chunking.chunks(first // array.chunking.chunk[0])
        return all(array.intact(one, values[(slice(None), *one.region[1:])]) for one in chunks)

    def _damaged(self, name: str, start: int, stop: int) -> UnreadableDataError:
        if isinstance(self.path, Path) and not (self.path / DESCRIPTION).exists():
            advice = "make its disk available again, or copy it back"
            return UnreachableDataError(f"{self.path} is no longer there: {advice}")
        samples = f"samples {start} to {stop - 1} of '{name}'"
        text = f"{self.path} is damaged: {samples} cannot be read as they were written"
        return UnreadableDataError(f"{text}; generate or import it again")

    def fields(self, side: str, indices: Indices, workers: Workers | None = None) -> FieldSource:
        """Return the fields of some samples of a side, read from disk on each pass.

        Other `workers` than the threads of this process must see the same path.
        """
        if not self._has_fields(side):
            return self._no_fields(indices)
        return StoredFields(self, side, indices, workers=workers)

    def load_fields(self, side: str, parts: Sequence[Indices]) -> list[FieldSource]:
        """Return the fields of several sets of samples of a side in memory, reading it once."""
        if not self._has_fields(side):
            return [self._no_fields(indices) for indices in parts]
        return [ArraySource(loaded) for loaded in self.load_parts(side, parts)]

    def parameters(self, parts: Sequence[Indices]) -> list[Tensor] | list[None]:
        """Return the parameters of several sets of samples, if there are any."""
        if not self.input_space.parameters:
            return [None] * len(parts)
        return self.load_parts("parameters", parts)

    def _no_fields(self, indices: Indices) -> FieldSource:
        return ArraySource(torch.zeros(len(self.ascending(indices)), *self.input_space.shape))

    def _has_fields(self, side: str) -> bool:
        if side not in SIDES:
            raise TwoscaleError(f"the sides of a dataset are {' and '.join(SIDES)}, got '{side}'")
        return side in self._arrays

    def load(self, name: str, indices: Indices) -> Tensor:
        """Return some samples of an array in memory, in ascending order of index.

        Fields are (samples, channels, height, width), parameters (samples, parameters).
        """
        return self.load_parts(name, [indices])[0]

    def load_parts(self, name: str, parts: Sequence[Indices]) -> list[Tensor]:
        """Return several sets of samples of an array in memory, reading the array once."""
        self._array(name)
        chosen = [self.ascending(indices) for indices in parts]
        if name in self._cached:
            return [self._cached[name][torch.from_numpy(one)] for one in chosen]
        loaded = [torch.empty(len(one), *self.inner_shape(name)) for one in chosen]
        for start, values in self.blocks(name, np.unique(np.concatenate(chosen))):
            block = single_precision(values)
            for fields, one in zip(loaded, chosen, strict=True):
                low, high = np.searchsorted(one, (start, start + len(values)))
                fields[low:high] = block[one[low:high] - start]
        return loaded

    def cache(self) -> Self:
        """Keep all arrays in memory from now on, for repeated loads of other splits."""
        for name in self.arrays:
            self._cached[name] = self.load(name, range(self.samples))
        return self

    def blocks(
        self, name: str, wanted: np.ndarray, *, window: Slices = None, workers: int | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first sample, values) of the stretches of an array that hold `wanted` samples.

        Their numbers ascend. A stretch has about 16 MiB at most, from one wanted sample to another.
        With a `window`, values are those of its rows and columns. Threads read ahead: `workers`
        many, by default as many as suit the place of the dataset.
        """
        inner = self.inner_shape(name)
        if window is not None:
            inner = (inner[0], *extent(checked_window(window, (inner[1], inner[2]))))
        space = self.output_space if name == "output" else self.input_space
        length = max(1, chunk_length(*space.shape) // self.chunk) * self.chunk
        ends = np.flatnonzero(np.diff(wanted // length)) + 1

        def read(rows: np.ndarray) -> tuple[int, np.ndarray]:
            first = int(rows[0])
            values = self.read(name, first, int(rows[-1]) + 1, window=window)
            return first, values.reshape(-1, *inner)

        stretches = np.split(wanted, ends) if len(wanted) else []
        ahead = self._workers if workers is None else workers
        yield from prefetch(read, stretches, workers=ahead)

    def inner_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of one sample in memory: (channels, height, width), or (parameters,)."""
        if name == "parameters":
            return (self.input_space.parameters,)
        space = self.output_space if name == "output" else self.input_space
        return (space.channels, *space.grid.shape)

    def ascending(self, indices: Indices) -> np.ndarray:
        """Return sample indices in ascending order, or say which of them are not there."""
        known = f"samples 0 to {self.samples - 1}"
        try:
            chosen = np.sort(np.asarray(indices, dtype=np.int64))
        except (OverflowError, TypeError, ValueError) as error:
            raise TwoscaleError(f"{self.path} has {known}, asked for others: {error}") from error
        if len(chosen) and not 0 <= chosen[0] <= chosen[-1] < self.samples:
            raise TwoscaleError(f"{self.path} has {known}, asked for {chosen[0]} to {chosen[-1]}")
        return chosen


def _reopened(kind: type[Dataset], path: Place, identity: str) -> Dataset:
    """Return the dataset at a path, if it is the one that another process sees there."""
    dataset = kind(path)
    if dataset.identity != identity:
        why = "it was written again meanwhile, or this machine has a copy of its own"
        raise TwoscaleError(f"{path} is another dataset here than where it was asked for: {why}")
    return dataset


class StoredFields:
    """Fields of a side without its parameters, in ascending order, read afresh on each pass."""

    def __init__(
        self,
        dataset: Dataset,
        side: str,
        indices: Indices,
        device: torch.device | str = "cpu",
        *,
        part: Window | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.dataset = dataset
        self.side = side
        self.indices = dataset.ascending(indices)
        self.device = torch.device(device)
        self.part = part
        self.workers = workers or on_device(self.device.type == "cuda")

    def __reduce__(self) -> Any:
        """Return how another process reads the same fields; there it is its own worker."""
        make = partial(StoredFields, part=self.part)
        return make, (self.dataset, self.side, self.indices, self.device)

    @property
    def shape(self) -> Shape:
        channels, *grid = self.dataset.inner_shape(self.side)
        height, width = grid if self.part is None else extent(self.part)
        return len(self.indices), channels, height, width

    def to(self, device: torch.device | str) -> StoredFields:
        """Return the same fields, delivered on `device`."""
        if self.workers not in HERE:  # others read on a CPU
            return self
        return StoredFields(self.dataset, self.side, self.indices, device, part=self.part)

    def window(self, rows: slice, columns: slice) -> StoredFields:
        """Return a part of each field: consecutive rows and columns of these fields.

        Only chunks that hold some of it are read. Fields of more than 4 MiB are stored in several.
        Ranges and chunks have as many samples as those of whole fields.
        """
        _, _, height, width = self.shape
        part = checked_window((rows, columns), (height, width))
        if self.part is not None:
            part = Window(*moved(part, [cut.start for cut in self.part]))
        workers = None if self.workers in HERE else self.workers
        return StoredFields(
            self.dataset, self.side, self.indices, self.device, part=part, workers=workers
        )

    def ranges(self) -> list[slice]:
        length = range_length(*self.dataset.inner_shape(self.side))
        return list(slices(len(self.indices), length))

    def read(self, samples: slice) -> Iterator[Tensor]:
        """Yield the chunks that an array in memory has; stored chunks at their ends are shared."""
        wanted = self.indices[samples]
        for part in slices(len(wanted), chunk_length(*self.dataset.inner_shape(self.side))):
            blocks = list(self._fields(wanted[part], workers=0))
            yield blocks[0] if len(blocks) == 1 else torch.cat(blocks)

    def chunks(self) -> Iterator[Tensor]:
        return self._fields(self.indices)

    def _fields(self, rows: np.ndarray, **options: Any) -> Iterator[Tensor]:
        """Yield consecutive fields of some samples, whose numbers ascend."""
        blocks = self.dataset.blocks(self.side, rows, window=self.part, **options)
        for start, values in blocks:
            low, high = np.searchsorted(rows, (start, start + len(values)))
            yield torch.from_numpy(values[rows[low:high] - start]).to(self.device)
            release_memory()  # fields are read on each pass where memory is short
