"""Datasets of the known problems."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.data.description import SIDES, Layout, Side, describe
from twoscale.data.store import Dataset
from twoscale.data.targets import PackedRow
from twoscale.data.writer import ChunkPacker, writing
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.fields.workers import Tasks
from twoscale.files import content_digest
from twoscale.problems import Problem
from twoscale.runtime.progress import Progress
from twoscale.runtime.threads import prefetch

# Values sampled and solved together: enough to fill the device, few enough to show progress.
_BATCH_VALUES = {"cpu": 2**20, "cuda": 2**24}


def generate(
    problem: Problem,
    path: str | Path,
    *,
    resolution: int | None = None,
    samples: int,
    seed: int = 0,
    device: torch.device | str = "cpu",
    overwrite: bool = False,
    workers: Tasks | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Write `samples` pairs of a problem as a dataset; an interrupted call continues.

    Fields have `resolution` nodes per side, by default as many as the problem says. Work is cut at
    fixed sample numbers, so that the bytes do not depend on interruptions. `workers` solve on their
    CPUs and compress; this process writes.
    """
    if workers is not None:
        device = "cpu"
    layout = _layout(problem, resolution, samples, seed)
    description = describe(layout, problem, seed=seed)
    cuda = torch.device(device).type == "cuda"
    where = str(device)
    with writing(path, description, overwrite=overwrite, resumable=True, device=where) as writer:
        length = _batch(layout, writer.chunk, cuda=cuda)
        if workers is not None:
            parts = [one for one in slices(samples, length) if writer.missing(one.start, one.stop)]
            work = _SolveAndPack(problem, layout, seed, writer.packer)
            for part, packed in zip(parts, workers.each(work, parts), strict=True):
                for row, one in packed:
                    if row not in writer.written:
                        writer.add(row, one)
                if progress:
                    progress("samples", part.stop, samples, "")
            return writer.finish()

        def solve(part: slice) -> tuple[slice, dict[str, np.ndarray]]:
            if not writer.missing(part.start, part.stop):
                return part, {}
            return part, _solved(problem, layout, part, seed, device)

        # A GPU solves the next samples while these are written.
        for part, arrays in prefetch(solve, slices(samples, length), workers=int(cuda)):
            if arrays:
                writer.write(part.start, arrays)
            if progress:
                progress("samples", part.stop, samples, "")
        return writer.finish()


@dataclass(frozen=True)
class _SolveAndPack:
    """Solves for some samples, and compresses the rows of chunks that hold them."""

    problem: Problem
    layout: Layout
    seed: int
    packer: ChunkPacker

    def __call__(self, part: slice) -> list[tuple[int, PackedRow]]:
        arrays = _solved(self.problem, self.layout, part, self.seed, "cpu")
        rows = self.packer.rows(part.start, part.stop)
        return [(row, self.packer(row, part.start, arrays)) for row in rows]


class GeneratedDataset(Dataset):
    """Pairs of a problem in memory, with the interface of a dataset; nothing is stored.

    Arguments are those of `generate`. The fields are the same.
    """

    has_checksums = False

    def __init__(
        self,
        problem: Problem,
        *,
        resolution: int | None = None,
        samples: int,
        seed: int = 0,
        device: torch.device | str = "cpu",
        progress: Progress | None = None,
    ) -> None:
        self._arguments = (problem, resolution, samples, seed)
        self.path = Path(f"{problem.name} in memory")
        self.layout = _layout(problem, resolution, samples, seed)
        self.metadata = describe(self.layout, problem, seed=seed) | {"chunk": self.layout.chunk}
        self.metadata["digest"] = content_digest(self.metadata)
        self._cached = {name: torch.empty(samples, *self.inner_shape(name)) for name in SIDES}
        self._arrays = self._cached
        cuda = torch.device(device).type == "cuda"
        for part in slices(samples, _batch(self.layout, self.layout.chunk, cuda=cuda)):
            for name, values in _solved(problem, self.layout, part, seed, device).items():
                array = self._cached[name]
                array[part] = torch.from_numpy(values).reshape(-1, *array.shape[1:])
            if progress:
                progress("samples", part.stop, samples, "")

    def __reduce__(self) -> Any:
        """Return how another process generates the same fields."""
        problem, resolution, samples, seed = self._arguments
        make = partial(GeneratedDataset, resolution=resolution, samples=samples, seed=seed)
        return make, (problem,)


def _layout(problem: Problem, resolution: int | None, samples: int, seed: int) -> Layout:
    """Return what is to be generated, or raise if it cannot be."""
    if samples < 1:
        raise TwoscaleError(f"at least one sample is needed, got {samples}")
    if seed < 0:
        raise TwoscaleError(f"the seed must not be negative, got {seed}")
    nodes = problem.resolution if resolution is None else resolution
    grid = problem.grid(nodes, nodes)
    return Layout(samples, *(_side(channels, grid) for channels in problem.channels))


def _batch(layout: Layout, chunk: int, *, cuda: bool) -> int:
    """Return how many samples are solved together: a multiple of a chunk."""
    values = _BATCH_VALUES["cuda" if cuda else "cpu"]
    return max(1, values // layout.largest // chunk) * chunk


def _solved(
    problem: Problem, layout: Layout, part: slice, seed: int, device: torch.device | str
) -> dict[str, np.ndarray]:
    """Return the inputs and outputs of some samples."""
    grid = layout.output.space.grid
    pairs = problem.pairs(grid, range(part.start, part.stop), seed=seed, device=device)
    return {
        name: _values(fields, side, f"{name}s of {problem.name}")
        for name, fields, side in zip(SIDES, pairs, (layout.input, layout.output), strict=True)
    }


def _side(channels: int, grid: Grid) -> Side:
    """Return the side of a problem's fields; one channel has no axis of its own."""
    return Side(Space(grid, channels), 3 if channels == 1 else 4)


def _values(fields: Tensor, side: Side, name: str) -> np.ndarray:
    """Return fields of single precision on the CPU, if they are those that a problem promised."""
    shape = (len(fields), *side.space.shape)
    if fields.shape not in (shape, (shape[0], *shape[2:])) or fields.numel() != prod(shape):
        sides, came = ", ".join(map(str, shape[1:])), tuple(fields.shape)
        raise TwoscaleError(f"{name} should have shape (samples, {sides}), got {came}")
    return fields.float().cpu().numpy()
