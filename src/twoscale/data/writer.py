"""Writing a dataset: chunk by chunk, so that an interrupted command can go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from twoscale.data.chunks import StoredChunks, zarr_package
from twoscale.data.description import (
    FORMAT,
    FORMAT_VERSION,
    description_digest,
    is_replaceable,
    layout_of,
)
from twoscale.data.store import Dataset, checksum
from twoscale.fields.source import slices
from twoscale.files import Output, claimed, plain_json, reporting_os_errors
from twoscale.runtime.threads import file_workers, prefetch, run_to_completion
from twoscale.surrogate.artifact import environment


@contextmanager
def writing(
    path: str | Path,
    description: dict[str, Any],
    *,
    overwrite: bool,
    resumable: bool = False,
    device: str = "cpu",
) -> Iterator[DatasetWriter]:
    """Give a writer for the dataset at `path`, which appears there when the writer finishes.

    A `resumable` one that is interrupted, and is opened again with the same description on the same
    `device`, goes on after the last chunk that was safely written.
    """
    with claimed(path, overwrite=overwrite, may_replace=is_replaceable) as output:
        yield DatasetWriter(output, description, resumable=resumable, device=device)


class DatasetWriter:
    """Writes a dataset into the content of an output.

    Chunks of samples are logged with their checksums once they are written.
    """

    def __init__(
        self, output: Output, description: dict[str, Any], *, resumable: bool, device: str
    ) -> None:
        self.output = output
        self.log = output.work.log if resumable else None
        layout = layout_of(description)
        layout.refuse_large()
        self.samples = layout.samples
        self.shapes = {
            name: (layout.samples, *shape) for name, shape in layout.sample_shapes.items()
        }
        self.chunk = layout.chunk
        self.checksums: dict[int, dict[str, str]] = {}
        self.attributes = plain_json(self._attributes(description))
        if not resumable:
            output.work.clear()
            run_to_completion(self._create)
            return
        request = self.attributes | {"environment": environment(torch.device(device))}
        if not (output.work.continues(request) and self._continue()):
            output.work.restart(request)
            run_to_completion(self._create)

    def _attributes(self, description: dict[str, Any]) -> dict[str, Any]:
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "complete": False}
        return head | {"chunk": self.chunk} | description

    def _continue(self) -> bool:
        """Take over what an interrupted writer has left; return whether it is of any use."""
        if self.log is None or not self.log.exists():
            return False
        content = self.output.content
        for leftover in content.rglob("*.partial"):  # a chunk that was being written
            leftover.unlink()
        try:
            self._group: Any = zarr_package().open_group(content, mode="r+")
            self._arrays: dict[str, Any] = {name: self._group[name] for name in self.shapes}
            stored = {
                name: StoredChunks(content / name, shape, self.chunk)
                for name, shape in self.shapes.items()
            }
        except Exception:  # a damaged group raises many kinds of errors
            return False
        self.checksums = dict(self._intact(self._read_log(self.log), stored))
        return True

    def _create(self) -> None:
        zarr = zarr_package()
        with reporting_os_errors(self.output.place):
            self._group = zarr.create_group(
                self.output.content, attributes=self.attributes, zarr_format=3
            )
            for name, shape in self.shapes.items():
                self._group.create_array(
                    name,
                    shape=shape,
                    chunks=(min(self.chunk, shape[0]), *shape[1:]),
                    dtype="float32",
                    compressors=zarr.codecs.BloscCodec(cname="lz4", clevel=3, shuffle="shuffle"),
                )
            self._arrays = {name: self._group[name] for name in self.shapes}
            if self.log is not None:
                self.log.touch()

    def _read_log(self, log: Path) -> dict[int, dict[str, str]]:
        written: dict[int, dict[str, str]] = {}
        for line in log.read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
                written[entry["start"]] = {name: entry[name] for name in self.shapes}
            except (ValueError, KeyError, TypeError):
                break  # the line that an interruption cut short
        return written

    def _intact(
        self, logged: dict[int, dict[str, str]], stored: dict[str, StoredChunks]
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the logged chunks whose bytes are there: after a loss of power some may not be."""

        def found(start: int) -> dict[str, str]:
            stop = min(start + self.chunk, self.samples)
            try:
                return {name: checksum(one.read(start, stop)) for name, one in stored.items()}
            except Exception:  # codecs raise many kinds of errors on damaged bytes
                return {}

        starts = [start for start in logged if start in range(0, self.samples, self.chunk)]
        for start, sums in zip(
            starts, prefetch(found, starts, workers=file_workers()), strict=True
        ):
            if sums == logged[start]:
                yield start, sums

    def missing(self, start: int, stop: int) -> bool:
        """Say whether any chunk of the samples from `start` to `stop` still has to be written."""
        return any(first not in self.checksums for first in range(start, stop, self.chunk))

    def write(self, start: int, arrays: dict[str, np.ndarray]) -> None:
        """Write consecutive samples of all arrays; `start` must be a multiple of the chunk.

        Values may have other axes than on disk, as long as they follow in the same order.
        """

        def write(part: slice) -> dict[str, Any]:
            entry: dict[str, Any] = {"start": start + part.start}
            for name, shape in self.shapes.items():
                block = np.ascontiguousarray(arrays[name][part], dtype=np.float32)
                block = block.reshape(-1, *shape[1:])
                self._arrays[name][start + part.start : start + part.stop] = block
                entry[name] = checksum(block)
            return entry

        samples = len(arrays["output"])
        for entry in prefetch(write, slices(samples, self.chunk), workers=file_workers()):
            self.checksums[entry["start"]] = {name: entry[name] for name in self.shapes}
            if self.log is not None:
                with self.log.open("a") as log:
                    log.write(json.dumps(entry) + "\n")

    def finish(self) -> Dataset:
        """Add the checksums to the description and move the dataset to its place."""
        ordered = [self.checksums[start] for start in sorted(self.checksums)]
        sums = {name: [entry[name] for entry in ordered] for name in self.shapes}
        whole = self.attributes | {"complete": True, "checksums": sums}
        whole["digest"] = description_digest(whole)
        run_to_completion(lambda: self._group.attrs.put(whole))
        self.output.commit()
        return Dataset(self.output.place)
