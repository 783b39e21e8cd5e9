"""Datasets of the known problems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from twoscale.data.description import Layout, Side, describe, is_replaceable
from twoscale.data.store import Dataset
from twoscale.data.writer import writing
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid, Space
from twoscale.fields.source import slices
from twoscale.files import check_target
from twoscale.problems import Problem
from twoscale.runtime.progress import Progress
from twoscale.runtime.threads import ahead

SMALLEST_RESOLUTION = 3  # nodes per side: fewer have no interior
# Values sampled and solved together: enough to fill the device, few enough to show progress.
_BATCH_VALUES = {"cpu": 2**20, "cuda": 2**24}


def generate(
    problem: Problem,
    path: str | Path,
    *,
    resolution: int,
    samples: int,
    seed: int = 0,
    device: torch.device | str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Write `samples` pairs of a problem as a dataset; an interrupted call continues.

    Work is cut at fixed sample numbers, so that the bytes do not depend on interruptions.
    """
    if samples < 1:
        raise TwoscaleError(f"at least one sample is needed, got {samples}")
    if seed < 0:
        raise TwoscaleError(f"the seed must not be negative, got {seed}")
    if resolution < SMALLEST_RESOLUTION:
        raise TwoscaleError(
            f"fields are generated on at least {SMALLEST_RESOLUTION} nodes per side, got "
            f"{resolution}"
        )
    check_target(path, overwrite=overwrite, may_replace=is_replaceable)  # before any work
    grid = Grid(resolution, resolution, getattr(problem, "periodic", (False, False)))
    layout = Layout(samples, *_probe(problem, grid, seed, device))
    description = describe(layout, problem, seed=seed)
    cuda = torch.device(device).type == "cuda"
    values = _BATCH_VALUES["cuda" if cuda else "cpu"]
    where = str(device)
    with writing(path, description, overwrite=overwrite, resumable=True, device=where) as writer:
        length = max(1, values // layout.largest // writer.chunk) * writer.chunk

        def solve(part: slice) -> tuple[slice, dict[str, np.ndarray]]:
            if not writer.missing(part.start, part.stop):
                return part, {}
            indices = range(part.start, part.stop)
            inputs = problem.sample(grid, indices, seed=seed, device=device)
            both = {"input": inputs, "output": problem.solve(inputs)}
            return part, {name: fields.float().cpu().numpy() for name, fields in both.items()}

        # A GPU solves the next samples while these are written.
        for part, arrays in ahead(solve, slices(samples, length), workers=int(cuda)):
            if arrays:
                writer.write(part.start, arrays)
            if progress:
                progress("samples", part.stop, samples, "")
        return writer.finish()


def _probe(
    problem: Problem, grid: Grid, seed: int, device: torch.device | str
) -> tuple[Side, Side]:
    """Return what inputs and outputs of a problem are, by one of its samples."""
    inputs = problem.sample(grid, [0], seed=seed, device=device)
    return _side(inputs, grid), _side(problem.solve(inputs), grid)


def _side(fields: Tensor, grid: Grid) -> Side:
    """Return the side of fields (samples, height, width) or (samples, channels, height, width)."""
    height, width = fields.shape[-2:]
    channels = fields.shape[1] if fields.ndim == 4 else 1
    return Side(Space(channels, Grid(height, width, grid.periodic)), fields.ndim)
