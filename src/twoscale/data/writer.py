"""Writing a dataset: chunk by chunk, so that an interrupted command can go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.store import (
    ARRAYS,
    FORMAT,
    FORMAT_VERSION,
    Dataset,
    checksum,
    description_digest,
    is_dataset,
    sample_chunk,
)
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import Parents, beside, put, remove, target
from twoscale.source import slices
from twoscale.threads import ahead, file_workers

try:
    import zarr
    from zarr.codecs import BloscCodec
except ImportError as error:
    raise missing_extra("zarr", "data") from error


class DatasetWriter:
    """Writes a dataset beside its final place; it appears there complete or not at all.

    Batches of samples are logged with their checksums once they are safely written, so that a
    writer opened again with the same description continues after the last one.
    """

    def __init__(self, path: Path, description: dict[str, Any], *, overwrite: bool) -> None:
        self.path = target(path, overwrite=overwrite, ours=is_dataset)
        self.partial = beside(self.path)
        self._parents = Parents(self.path)
        self.description = description
        self.log = self.partial / "written.jsonl"
        grid, samples = description["grid"], description["samples"]
        self.chunk = sample_chunk(grid["height"], grid["width"])
        if not self._continues():
            self._create((samples, grid["height"], grid["width"]))
        self.checksums = self._read_log()
        self._arrays: Any = zarr.open_group(self.partial, mode="r+")

    def _continues(self) -> bool:
        group = self.partial / "zarr.json"
        if not (self.log.exists() and group.exists()):
            return False
        try:
            return json.loads(group.read_text())["attributes"] == _attributes(self.description)
        except (OSError, ValueError, KeyError):
            return False

    def _create(self, shape: tuple[int, int, int]) -> None:
        remove(self.partial)
        try:
            attributes = _attributes(self.description)
            group = zarr.create_group(self.partial, attributes=attributes, zarr_format=3)
        except OSError as error:
            raise TwoscaleError(f"cannot write {self.path}: {error.strerror or error}") from error
        for name in ARRAYS:
            group.create_array(
                name,
                shape=shape,
                chunks=(min(self.chunk, shape[0]), *shape[1:]),
                dtype="float32",
                compressors=BloscCodec(cname="lz4", clevel=3, shuffle="shuffle"),
            )
        self.log.touch()

    def _read_log(self) -> dict[int, dict[str, str]]:
        written: dict[int, dict[str, str]] = {}
        for line in self.log.read_text().splitlines():
            try:
                entry = json.loads(line)
                written[entry["start"]] = {name: entry[name] for name in ARRAYS}
            except (ValueError, KeyError):
                break  # the line that an interruption cut short
        return written

    def missing(self, start: int, stop: int) -> bool:
        """Say whether any chunk of the samples from `start` to `stop` still has to be written."""
        return any(first not in self.checksums for first in range(start, stop, self.chunk))

    def write(self, start: int, inputs: np.ndarray, outputs: np.ndarray) -> None:
        """Write consecutive samples; `start` must be a multiple of the chunk."""

        def write(part: slice) -> dict[str, Any]:
            entry: dict[str, Any] = {"start": start + part.start}
            for name, values in zip(ARRAYS, (inputs, outputs), strict=True):
                block = np.ascontiguousarray(values[part], dtype=np.float32)
                self._arrays[name][start + part.start : start + part.stop] = block
                entry[name] = checksum(block)
            return entry

        for entry in ahead(write, slices(len(inputs), self.chunk), workers=file_workers()):
            self.checksums[entry["start"]] = {name: entry[name] for name in ARRAYS}
            with self.log.open("a") as log:
                log.write(json.dumps(entry) + "\n")

    def finish(self) -> Dataset:
        """Add the checksums to the description and move the dataset to its place."""
        ordered = [self.checksums[start] for start in sorted(self.checksums)]
        sums = {name: [entry[name] for entry in ordered] for name in ARRAYS}
        whole = dict(self._arrays.attrs) | {"complete": True, "checksums": sums}
        self._arrays.attrs.update(whole | {"digest": description_digest(whole)})
        self.log.unlink()
        put(self.partial, self.path)
        return Dataset(self.path)

    def discard(self) -> None:
        """Remove what was written."""
        remove(self.partial)
        self._parents.remove()


def _attributes(description: dict[str, Any]) -> dict[str, Any]:
    grid = description["grid"]
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "complete": False}
    return head | {"chunk": sample_chunk(grid["height"], grid["width"])} | description
