"""The dataset store: a Zarr group of two arrays, chunked by sample, that describes itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from twoscale.data.chunks import StoredChunks
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.fields.source import chunk_length, slices
from twoscale.files import content_digest, is_a, read_json
from twoscale.problems import PROBLEMS, Problem
from twoscale.runtime.memory import require_memory, short_of_memory
from twoscale.runtime.threads import ahead, file_workers

FORMAT = "twoscale-dataset"
FORMAT_VERSION = 2
ARRAYS = ("input", "output")
_CHUNK_BYTES = 2**22
_OPTIONAL = {
    "problem": str,
    "seed": int,
    "distribution": dict,
    "boundary_condition": str,
    "solver": str,
}
"""Entries of a description that are of this type or null."""


class Dataset:
    """Pairs of fields on disk, opened for reading."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metadata = _read_description(self.path)
        self.grid = Grid(self.metadata["grid"]["height"], self.metadata["grid"]["width"])
        self._arrays = self._open_arrays()
        self._held: dict[str, Tensor] = {}

    def _open_arrays(self) -> dict[str, StoredChunks]:
        shape = (self.samples, *self.grid.shape)
        room = 2 * 4 * min(self.chunk, self.samples) * self.grid.height * self.grid.width
        require_memory(f"reading {self.path} in parts", room, "its fields are too large")
        try:
            return {name: StoredChunks(self.path / name, shape, self.chunk) for name in ARRAYS}
        except TwoscaleError as error:
            raise TwoscaleError(f"{self.path} is damaged: {error}") from error

    @property
    def samples(self) -> int:
        return int(self.metadata["samples"])

    @property
    def nbytes(self) -> int:
        """Return the bytes of both arrays in memory."""
        return 2 * 4 * self.samples * self.grid.height * self.grid.width

    @property
    def problem(self) -> Problem | None:
        return PROBLEMS.get(self.metadata["problem"])

    @property
    def dtype(self) -> str:
        return self._arrays["output"].dtype

    @property
    def identity(self) -> str:
        """Return a digest of everything the dataset holds: its fields and their description."""
        return str(self.metadata["digest"])[:16]

    @property
    def chunk(self) -> int:
        """Return the number of samples stored together."""
        return int(self.metadata["chunk"])

    def read(self, name: str, start: int, stop: int, *, verify: bool = True) -> np.ndarray:
        """Return consecutive fields of one array; their chunks are held to their checksums."""
        first = start // self.chunk * self.chunk
        last = min(-(-stop // self.chunk) * self.chunk, self.samples)
        try:
            values = self._arrays[name].read(first, last)
        except TwoscaleError:
            raise
        except Exception as error:  # codecs raise many kinds of errors on damaged bytes
            if short_of_memory(error):
                raise
            raise self._damaged(name, start, stop) from error
        for part in slices(len(values), self.chunk) if verify else ():
            if not self.intact(name, first + part.start, values[part]):
                raise self._damaged(name, first + part.start, first + part.stop)
        return values[start - first : stop - first]

    def intact(self, name: str, first: int, values: np.ndarray) -> bool:
        """Say whether the chunk that starts at sample `first` is as it was written."""
        return checksum(values) == self.metadata["checksums"][name][first // self.chunk]

    def _damaged(self, name: str, start: int, stop: int) -> TwoscaleError:
        return TwoscaleError(
            f"{self.path} is damaged: samples {start} to {stop - 1} of '{name}' cannot be read "
            "as they were written; generate or import it again"
        )

    def fields(self, name: str, indices: Sequence[int] | np.ndarray) -> StoredFields:
        """Return some samples of one array as a source that reads from disk on each pass."""
        return StoredFields(self, name, indices)

    def load(self, name: str, indices: Sequence[int] | np.ndarray) -> Tensor:
        """Return some samples of one array in memory, in ascending order of index."""
        return self.load_parts(name, [indices])[0]

    def load_parts(self, name: str, parts: Sequence[Sequence[int] | np.ndarray]) -> list[Tensor]:
        """Return several sets of samples of one array in memory, reading the array once."""
        sources = [self.fields(name, indices) for indices in parts]
        if name in self._held:
            return [self._held[name][torch.from_numpy(source.indices)] for source in sources]
        loaded = [torch.empty(source.shape) for source in sources]
        wanted = np.unique(np.concatenate([source.indices for source in sources]))
        for start, values in self.blocks(name, wanted):
            block = torch.from_numpy(values)
            for fields, source in zip(loaded, sources, strict=True):
                low, high = np.searchsorted(source.indices, (start, start + len(values)))
                fields[low:high] = block[source.indices[low:high] - start]
        return loaded

    def hold(self) -> Self:
        """Keep all fields in memory from now on, for repeated loads of other splits."""
        for name in ARRAYS:
            self._held[name] = self.load(name, range(self.samples))
        return self

    def blocks(self, name: str, wanted: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first sample, fields) of the stretches of an array that hold `wanted` samples."""
        length = max(1, chunk_length(*self.grid.shape) // self.chunk) * self.chunk
        starts = np.unique(wanted // length) * length

        def read(start: int) -> tuple[int, np.ndarray]:
            return start, self.read(name, start, min(start + length, self.samples))

        yield from ahead(read, (int(start) for start in starts), workers=file_workers())


class StoredFields:
    """Samples of a stored array, in ascending order, read afresh on each pass."""

    def __init__(
        self,
        dataset: Dataset,
        name: str,
        indices: Sequence[int] | np.ndarray,
        device: torch.device | str = "cpu",
    ) -> None:
        self.dataset = dataset
        self.name = name
        self.indices = np.sort(np.asarray(indices))
        if len(self.indices) and not 0 <= self.indices[0] <= self.indices[-1] < dataset.samples:
            raise TwoscaleError(
                f"{dataset.path} has samples 0 to {dataset.samples - 1}, "
                f"asked for {self.indices[0]} to {self.indices[-1]}"
            )
        self.device = device

    @property
    def shape(self) -> tuple[int, int, int]:
        return (len(self.indices), *self.dataset.grid.shape)

    def to(self, device: torch.device | str) -> StoredFields:
        """Return the same fields, delivered on `device`."""
        return StoredFields(self.dataset, self.name, self.indices, device)

    def chunks(self) -> Iterator[Tensor]:
        for start, values in self.dataset.blocks(self.name, self.indices):
            low, high = np.searchsorted(self.indices, (start, start + len(values)))
            wanted = values[self.indices[low:high] - start]
            yield torch.from_numpy(wanted).to(self.device)


def is_dataset(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, whatever its state."""
    try:
        attributes = read_json(path / "zarr.json", require={"attributes": dict})["attributes"]
    except TwoscaleError:
        return False
    return attributes.get("format") == FORMAT


def is_replaceable(path: Path) -> bool:
    """Say whether a folder is a twoscale dataset, and holds nothing but what we write."""
    if not is_dataset(path):
        return False
    held = {entry.name for entry in path.iterdir()} - {"zarr.json"}
    inside = {entry.name for name in ARRAYS for entry in (path / name).glob("*")}
    return held <= set(ARRAYS) and inside <= {"zarr.json", "c"}


def sample_chunk(height: int, width: int) -> int:
    """Return how many samples share a stored chunk: about 4 MiB of float32."""
    return max(1, _CHUNK_BYTES // (4 * height * width))


def checksum(values: np.ndarray) -> str:
    """Return the digest of an array's bytes."""
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16).hexdigest()


def description_digest(attributes: dict[str, Any]) -> str:
    """Return the digest of a dataset's description, the checksums of its fields included.

    That is of all attributes but `digest`, where it is stored, as JSON with sorted keys.
    """
    return content_digest(attributes, but="digest")


def _read_description(path: Path) -> dict[str, Any]:
    """Return the attributes of a complete dataset, whose types and sizes are checked."""
    try:
        group = read_json(path / "zarr.json", require={"attributes": dict, "node_type": str})
    except TwoscaleError as error:
        if not os.path.lexists(path):
            raise TwoscaleError(
                f"{path} does not exist: make it with 'twoscale generate' or 'import'"
            ) from error
        raise TwoscaleError(f"{path} is not a readable Zarr group: {error}") from error
    attributes: dict[str, Any] = group["attributes"]
    if attributes.get("format") != FORMAT:
        raise TwoscaleError(
            f"{path} is not a twoscale dataset: make one with 'twoscale generate' or 'import'"
        )
    if attributes.get("format_version") != FORMAT_VERSION:
        raise TwoscaleError(
            f"{path} has dataset format {attributes.get('format_version')}; this twoscale reads "
            f"{FORMAT_VERSION}: generate or import it again"
        )
    if attributes.get("complete") is not True:
        raise TwoscaleError(f"{path} is not complete: generate or import it again")
    if attributes.get("digest") != description_digest(attributes):
        raise TwoscaleError(
            f"{path} is damaged: its description has changed since it was written; generate or "
            "import it again"
        )
    wrong = _wrong_entries(attributes)
    if wrong:
        raise TwoscaleError(f"{path} is damaged: its description lacks a proper {', '.join(wrong)}")
    return attributes


def _wrong_entries(attributes: dict[str, Any]) -> list[str]:
    """Return the names of entries that are missing, of a wrong type or at odds with others."""
    wrong = [key for key, kind in _OPTIONAL.items() if not _is_optional(attributes, key, kind)]
    grid: Any = attributes.get("grid")
    samples: Any = attributes.get("samples")
    if not (isinstance(grid, dict) and _is_count(grid.get("height"), grid.get("width"))):
        return [*wrong, "grid"]
    chunk = sample_chunk(grid["height"], grid["width"])
    if not _is_count(attributes.get("chunk")) or attributes["chunk"] != chunk:
        return [*wrong, "chunk"]
    if not _is_count(samples):
        return [*wrong, "samples"]
    # As many as the file has room for: a lie about the samples ends here.
    if not _are_checksums(attributes.get("checksums"), -(-samples // chunk)):
        return [*wrong, "checksums"]
    return wrong


def _is_count(*values: Any) -> bool:
    return all(is_a(value, int) and value > 0 for value in values)


def _is_optional(attributes: dict[str, Any], key: str, kind: type) -> bool:
    return key in attributes and (attributes[key] is None or is_a(attributes[key], kind))


def _are_checksums(value: Any, chunks: int) -> bool:
    """Say whether there is one text for each chunk of each array."""
    return isinstance(value, dict) and all(
        isinstance(sums := value.get(name), list)
        and len(sums) == chunks
        and all(isinstance(text, str) for text in sums)
        for name in ARRAYS
    )
