"""Errors on Darcy 3/12, 85 x 85, of an encoder that also reads a coarse solution.

python scripts/assisted_record.py --size paper --out results/assisted.json

The benchmark keeps every fifth node of media and solutions on 421 x 421 nodes. Here the equation is
solved on the kept nodes as well, which takes far less time and is wrong by the error given as
"coarse_solution". The encoder reads this solution as a second channel beside the medium. So the
equation takes part in each prediction: these errors are not learned from pairs alone, and belong in
no row of the leaderboard. It needs torch, NumPy and SciPy, and no dataset.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from records import write_record
from torch import Tensor

from twoscale import Darcy, Surrogate
from twoscale.math.measures import Compared, relative_errors
from twoscale.problems.darcy import DarcyFNO
from twoscale.runtime.progress import now
from twoscale.surrogate.options import resolve_device

TEST_SEED = 2  # of the study `leaderboard`
_SETTINGS: dict[str, Any] = {
    "predictor": "encoder",
    "cycles": 2,
    "weight_decay": 0.01,
    "symmetries": "square",
    "average_symmetries": True,
}


@dataclass(frozen=True)
class Size:
    """Nodes per side of kept and of all nodes, samples, seeds, and the settings of the encoder."""

    side: int
    nodes: int
    samples: int
    tests: int
    seeds: Sequence[int]
    settings: dict[str, Any] = field(default_factory=dict)


SIZES = {
    "small": Size(13, 61, 60, 20, [0], {"width": 8, "blocks": 1, "epochs": 4, "batch_size": 8}),
    "paper": Size(85, 421, 1000, 1000, [0, 1], {"epochs": 200, "members": 2}),
}


def pairs(size: Size, seed: int, samples: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return media with coarse solutions (samples, 2, side, side), and thinned fine solutions."""
    problem = DarcyFNO(nodes=size.nodes)
    grid = problem.grid(size.side, size.side)
    media, truth = problem.pairs(grid, range(samples), seed=seed, device=device)
    coarse = Darcy(high=problem.high, low=problem.low).solve(media)
    return torch.stack([media, coarse], 1).float(), truth.float()


def errors(predicted: Tensor, truth: Tensor) -> dict[str, float]:
    """Return the relative L2 errors of fields (samples, height, width)."""
    return relative_errors([Compared(predicted[:, None].double(), truth[:, None].double())])


def measure(size: Size, device: torch.device) -> dict[str, Any]:
    """Return the errors of coarse solutions, and of encoders that read them, by seed."""
    start = now()
    inputs, outputs = pairs(size, 0, size.samples, device)
    fresh, truth = pairs(size, TEST_SEED, size.tests, device)
    found: dict[str, Any] = {
        "data_seconds": now() - start,
        "coarse_solution": errors(fresh[:, 1], truth),
        "encoder": [],
    }
    for seed in size.seeds:
        start = now()
        surrogate = Surrogate(
            "whole-field", device=device, seed=seed, **_SETTINGS, **size.settings
        ).fit(inputs, outputs, calibration=False)
        seconds = now() - start
        predicted = surrogate.predict(fresh)
        row = {"seed": seed, **errors(predicted, truth), "fit_seconds": seconds}
        found["encoder"].append(row)
        print(row, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    device = resolve_device(given.device)
    record = {
        "size": asdict(SIZES[given.size]),
        "settings": _SETTINGS,
        **measure(SIZES[given.size], device),
    }
    write_record(given.out, record, device=device)


if __name__ == "__main__":
    main()
