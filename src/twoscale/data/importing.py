"""People's own pairs of fields, from the files they have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twoscale.data.generation import describe
from twoscale.data.readers import open_pair
from twoscale.data.readers.base import StoredArray, reading
from twoscale.data.store import Dataset, sample_chunk
from twoscale.data.writer import writing
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.memory import require_memory
from twoscale.runtime.progress import Progress


def import_fields(
    files: Sequence[str | Path],
    path: str | Path,
    *,
    input_key: str | None = None,
    output_key: str | None = None,
    problem: Problem | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Write a dataset from one npz, HDF5 or MAT file with two arrays, or from two npy files.

    Arrays are (samples, height, width); an axis of length 1 for a channel is dropped.
    """
    places = [Path(file) for file in files]
    with open_pair(places, input_key, output_key) as (inputs, outputs):
        pair = [
            _as_fields(inputs, "input", places[0]),
            _as_fields(outputs, "output", places[-1]),
        ]
        if pair[0].shape != pair[1].shape:
            raise TwoscaleError(
                f"the input fields have shape {pair[0].shape}, the output fields {pair[1].shape}: "
                "they must agree"
            )
        samples, height, width = pair[0].shape
        grid = Grid(height, width)
        require_memory(
            f"reading {places[0]} in parts",
            sum(array.part_bytes(sample_chunk(height, width)) for array in pair),
            "its fields are too large",
        )
        description = describe(problem, grid, samples) | {"seed": None}
        with writing(path, description, overwrite=overwrite) as writer:
            for part in slices(samples, writer.chunk):
                writer.write(part.start, *(array.read(part) for array in pair))
                if progress:
                    progress("samples", part.stop, samples, "")
            return writer.finish()


class _FieldArray:
    """An array read in slices of samples and checked as it is read."""

    def __init__(
        self, array: StoredArray, name: str, file: Path, shape: tuple[int, int, int]
    ) -> None:
        self.array = array
        self.name = name
        self.file = file
        self.shape = shape

    def part_bytes(self, samples: int) -> int:
        """Return the memory that some samples take as they are stored and as they are written."""
        values = min(samples, self.shape[0]) * math.prod(self.shape[1:])
        return values * (self.array.dtype.itemsize + np.dtype(np.float32).itemsize)

    def read(self, part: slice) -> np.ndarray:
        """Return some samples, (batch, height, width) in single precision."""
        with reading(self.file):
            stored = np.asarray(self.array[part]).reshape(-1, *self.shape[1:])
        with np.errstate(over="ignore"):  # what is too large is told below
            values = stored.astype(np.float32, copy=False)
        finite = np.isfinite(values).all(axis=(1, 2))
        if not finite.all():
            bad = int(finite.argmin())
            what = "values beyond the range of single precision (3.4e38)"
            if not np.isfinite(stored[bad]).all():
                what = "NaN or infinite values"
            raise TwoscaleError(
                f"the {self.name} fields contain {what}, first in sample {part.start + bad}"
            )
        return values


def _as_fields(array: StoredArray, name: str, file: Path) -> _FieldArray:
    if array.dtype.kind not in "fiub":
        raise TwoscaleError(f"the {name} fields must be real numbers, got dtype {array.dtype}")
    shape = tuple(int(size) for size in array.shape)
    if len(shape) == 4 and 1 in (shape[1], shape[3]):
        shape = (shape[0], *(shape[2:] if shape[1] == 1 else shape[1:3]))
    if len(shape) != 3 or not math.prod(shape):
        raise TwoscaleError(
            f"the {name} fields must have shape (samples, height, width), got {tuple(array.shape)}"
        )
    return _FieldArray(array, name, file, (shape[0], shape[1], shape[2]))
