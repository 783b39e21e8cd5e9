"""The dataset store: a Zarr group of two arrays, chunked by sample, that describes itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import content_digest, read_json
from twoscale.grid import Grid
from twoscale.problems import PROBLEMS, Problem
from twoscale.source import chunk_length
from twoscale.threads import ahead, file_workers

try:
    import zarr
except ImportError as error:
    raise missing_extra("zarr", "data") from error

FORMAT = "twoscale-dataset"
FORMAT_VERSION = 1
ARRAYS = ("input", "output")
_CHUNK_BYTES = 2**22
_DESCRIBED = ("problem", "seed", "distribution", "boundary_condition", "solver")


class Dataset:
    """Pairs of fields on disk, opened for reading."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metadata, self._arrays = _open(self.path)
        self._held: dict[str, Tensor] = {}
        self.grid = Grid(self.metadata["grid"]["height"], self.metadata["grid"]["width"])

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
        return str(self._arrays["output"].dtype)

    @property
    def identity(self) -> str:
        """Return a digest of everything the dataset holds."""
        text = json.dumps(self.metadata["checksums"], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def chunk(self) -> int:
        """Return the number of samples stored together."""
        return int(self.metadata["chunk"])

    def read(self, name: str, start: int, stop: int, *, verify: bool = True) -> np.ndarray:
        """Return consecutive fields of one array; whole chunks are held to their checksums."""
        try:
            values = np.asarray(self._arrays[name][start:stop])
        except Exception as error:  # codecs raise many kinds of errors on damaged bytes
            raise self._damaged(name, start, stop) from error
        if verify:
            for first in range(-(-start // self.chunk) * self.chunk, stop, self.chunk):
                last = min(first + self.chunk, self.samples)
                if last <= stop and not self.intact(
                    name, first, values[first - start : last - start]
                ):
                    raise self._damaged(name, first, last)
        return values

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
        return read_json(path / "zarr.json").get("attributes", {}).get("format") == FORMAT
    except TwoscaleError:
        return False


def sample_chunk(height: int, width: int) -> int:
    """Return how many samples share a stored chunk: about 4 MiB of float32."""
    return max(1, _CHUNK_BYTES // (4 * height * width))


def checksum(values: np.ndarray) -> str:
    """Return the digest of an array's bytes."""
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16).hexdigest()


def description_digest(attributes: dict[str, Any]) -> str:
    """Return the digest of a dataset's description: all attributes but the digest itself."""
    return content_digest(attributes, but="digest")


def _open(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata and the arrays of a complete dataset."""
    if not path.exists():
        raise TwoscaleError(f"{path} does not exist: make it with 'twoscale generate' or 'import'")
    try:
        group: Any = zarr.open_group(path, mode="r")
        metadata: dict[str, Any] = dict(group.attrs)
    except Exception as error:  # a damaged group raises many kinds of errors
        raise TwoscaleError(f"{path} is not a readable Zarr group: {_short(error)}") from error
    if metadata.get("format") != FORMAT:
        raise TwoscaleError(
            f"{path} is not a twoscale dataset: make one with 'twoscale generate' or 'import'"
        )
    if metadata.get("format_version") != FORMAT_VERSION:
        raise TwoscaleError(
            f"{path} has dataset format {metadata.get('format_version')}; this twoscale reads "
            f"{FORMAT_VERSION}"
        )
    try:
        grid = metadata["grid"]
        shape = (metadata["samples"], grid["height"], grid["width"])
        arrays = {name: group[name] for name in ARRAYS}
        missing = [key for key in _DESCRIBED if key not in metadata]
        if missing:
            raise KeyError(f"its description lacks {', '.join(missing)}")
        whole = metadata["complete"] and all(array.shape == shape for array in arrays.values())
        chunks = -(-shape[0] // metadata["chunk"])
        whole = whole and all(len(metadata["checksums"][name]) == chunks for name in ARRAYS)
    except Exception as error:
        raise TwoscaleError(f"{path} is damaged: {_short(error)}") from error
    if not whole:
        raise TwoscaleError(f"{path} is damaged: its arrays do not match its description")
    return metadata, arrays


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
