"""Datasets of the known problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from twoscale.data.store import Dataset
from twoscale.data.writer import writing
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.progress import Progress
from twoscale.runtime.threads import ahead

# Nodes sampled and solved together: enough to fill the device, few enough to show progress.
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
    grid = Grid.square(resolution)
    description = describe(problem, grid, samples) | {"seed": seed}
    cuda = torch.device(device).type == "cuda"
    values = _BATCH_VALUES["cuda" if cuda else "cpu"]
    where = str(device)
    with writing(path, description, overwrite=overwrite, resumable=True, device=where) as writer:
        length = max(1, values // resolution**2 // writer.chunk) * writer.chunk

        def solve(part: slice) -> tuple[slice, list[np.ndarray]]:
            if not writer.missing(part.start, part.stop):
                return part, []
            indices = range(part.start, part.stop)
            inputs = problem.sample(grid, indices, seed=seed, device=device)
            both = (inputs, problem.solve(inputs))
            return part, [fields.float().cpu().numpy() for fields in both]

        # A GPU solves the next samples while these are written.
        for part, arrays in ahead(solve, slices(samples, length), workers=int(cuda)):
            if arrays:
                writer.write(part.start, *arrays)
            if progress:
                progress("samples", part.stop, samples, "")
        return writer.finish()


def describe(problem: Problem | None, grid: Grid, samples: int) -> dict[str, Any]:
    """Return the metadata every dataset has; unknown problems leave it null."""
    return {
        "problem": problem.name if problem else None,
        "samples": samples,
        "grid": {"height": grid.height, "width": grid.width, "spacing": list(grid.spacing)},
        "distribution": problem.distribution if problem else None,
        "boundary_condition": problem.boundary_condition if problem else None,
        "solver": problem.solver if problem else None,
    }
