"""Datasets of the known problems."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

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
    solver = PairSolver.of(problem, resolution, samples, seed)
    description = describe(solver.layout, problem, seed=seed)
    where = str(device)
    with writing(path, description, overwrite=overwrite, resumable=True, device=where) as writer:
        batches = solver.batches(device)
        if workers is not None:
            parts = [one for one in batches if writer.missing(one.start, one.stop)]
            work = _SolveAndPack(solver, writer.packer)
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
            return part, solver.solve(part, device)

        # A GPU solves the next samples while these are written.
        ahead = int(torch.device(device).type == "cuda")
        for part, arrays in prefetch(solve, batches, workers=ahead):
            if arrays:
                writer.write(part.start, arrays)
            if progress:
                progress("samples", part.stop, samples, "")
        return writer.finish()


@dataclass(frozen=True)
class PairSolver:
    """Samples inputs of a problem and solves for their outputs, some of all samples at a time."""

    problem: Problem
    layout: Layout
    seed: int

    @classmethod
    def of(cls, problem: Problem, resolution: int | None, samples: int, seed: int) -> PairSolver:
        """Return the solver for so many samples, or raise if they cannot be generated."""
        if samples < 1:
            raise TwoscaleError(f"at least one sample is needed, got {samples}")
        if seed < 0:
            raise TwoscaleError(f"the seed must not be negative, got {seed}")
        nodes = problem.resolution if resolution is None else resolution
        grid = problem.grid(nodes, nodes)
        layout = Layout(samples, *(_side(channels, grid) for channels in problem.channels))
        return cls(problem, layout, seed)

    def batches(self, device: torch.device | str) -> list[slice]:
        """Return the samples that are solved together: a multiple of a chunk."""
        kind, chunk = torch.device(device).type, self.layout.chunk
        values = _BATCH_VALUES["cuda" if kind == "cuda" else "cpu"]
        return slices(self.layout.samples, max(1, values // self.layout.largest // chunk) * chunk)

    def solve(self, part: slice, device: torch.device | str = "cpu") -> dict[str, np.ndarray]:
        """Return the inputs and outputs of some samples."""
        layout, samples = self.layout, range(part.start, part.stop)
        grid = layout.output.space.grid
        pairs = self.problem.pairs(grid, samples, seed=self.seed, device=device)
        return {
            name: _values(fields, side, f"{name}s of {self.problem.name}")
            for name, fields, side in zip(SIDES, pairs, (layout.input, layout.output), strict=True)
        }


@dataclass(frozen=True)
class _SolveAndPack:
    """Solves for some samples, and compresses the rows of chunks that hold them."""

    solver: PairSolver
    packer: ChunkPacker

    def __call__(self, part: slice) -> list[tuple[int, PackedRow]]:
        arrays = self.solver.solve(part)
        rows = self.packer.rows(part.start, part.stop)
        return [(row, self.packer(row, part.start, arrays)) for row in rows]


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
