"""How far the solver's steps bring predictions of Darcy flow, from the prediction and from zero.

python scripts/polish_record.py --size paper --out results/polish.json

An encoder is fitted on Darcy fields. Its predictions of fresh fields are certified, polished by
three steps, and polished until the certificate proves a relative error of 1e-6. The same solver
from zero is measured beside it. It needs torch, NumPy and SciPy, and no dataset.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from records import write_record
from torch import Tensor

from twoscale import Darcy, Surrogate, certify, polish
from twoscale.math.measures import Compared, relative_errors
from twoscale.runtime.progress import now
from twoscale.surrogate.options import resolve_device

STEPS = 3
TOLERANCE = 1e-6
_SETTINGS = {"predictor": "encoder", "symmetries": "problem", "average_symmetries": True}


@dataclass(frozen=True)
class Size:
    """Nodes per side, pairs of each part, and the settings of the encoder."""

    side: int
    training: int
    validation: int
    fresh: int
    settings: dict[str, Any] = field(default_factory=dict)


SIZES = {
    "small": Size(33, 400, 50, 100, {"width": 16, "epochs": 10, "batch_size": 16}),
    "paper": Size(256, 8000, 1000, 1000, {"epochs": 16}),
}


def pairs(size: Size, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Return pairs (samples, height, width) in float64 to train on, to validate on, and fresh."""
    problem, found, start = Darcy(), [], 0
    for samples in (size.training, size.validation, size.fresh):
        grid = problem.grid(size.side, size.side)
        indices = range(start, start + samples)
        found.append(problem.pairs(grid, indices, seed=0, device=device))
        start += samples
    return found


def errors(predicted: Tensor, truth: Tensor) -> dict[str, float]:
    """Return the relative L2 errors of fields (samples, height, width)."""
    return relative_errors([Compared(predicted[:, None].double(), truth[:, None])])


def certified(predicted: Tensor, media: Tensor, truth: Tensor) -> dict[str, Any]:
    """Return how far the bounds are from the energy norm of the true errors, and what they cost."""
    certificate, seconds = timed(lambda: certify(predicted, media, Darcy()), len(media))
    exact = certify(truth, media, Darcy())
    upper, lower = certificate.energy_error_upper, certificate.energy_error_lower
    return {
        "mean_upper_over_lower": float(np.mean(upper / lower)),
        "largest_relative_error_upper": float(certificate.relative_error_upper.max()),
        "largest_relative_error_upper_of_the_truth": float(exact.relative_error_upper.max()),
        "milliseconds": seconds,
    }


def timed(work: Callable[[], Any], samples: int) -> tuple[Any, float]:
    """Return the result of the second call, and its milliseconds per sample."""
    work()
    start = now()
    result = work()
    return result, 1000 * (now() - start) / samples


def from_start(start: Tensor, media: Tensor, truth: Tensor, **amount: Any) -> dict[str, Any]:
    """Return the errors, steps and time of polishing fields."""
    polished, milliseconds = timed(lambda: polish(start, media, Darcy(), **amount), len(media))
    return {
        **errors(polished.fields, truth),
        "mean_steps": float(polished.steps.mean()),
        "most_steps": int(polished.steps.max()),
        "largest_relative_error_upper": float(polished.certificate.relative_error_upper.max()),
        "milliseconds": milliseconds,
    }


def measure(size: Size, device: torch.device) -> dict[str, Any]:
    """Return the errors of predictions before and after polishing, beside the start from zero."""
    began = now()
    training, validation, (media, truth) = pairs(size, device)
    generated = now()
    surrogate = Surrogate(
        "whole-field", problem="darcy", device=device, **_SETTINGS, **size.settings
    ).fit(*training, validation=validation, calibration=False)
    fitted = now()
    with torch.no_grad():
        predicted, milliseconds = timed(lambda: surrogate.predict(media), len(media))
    starts = {"prediction": predicted, "zero": torch.zeros_like(truth)}
    return {
        "seconds": {"data": generated - began, "fit": fitted - generated},
        "prediction": {**errors(predicted, truth), "milliseconds": milliseconds},
        "certificate": certified(predicted, media, truth),
        "three_steps": {k: from_start(v, media, truth, steps=STEPS) for k, v in starts.items()},
        "to_tolerance": {
            k: from_start(v, media, truth, tolerance=TOLERANCE) for k, v in starts.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    device = resolve_device(given.device)
    found = measure(SIZES[given.size], device)
    record = {
        "size": asdict(SIZES[given.size]),
        "tolerance": TOLERANCE,
        **found,
    }
    write_record(given.out, record, device=device)
    for name in ("prediction", "certificate", "three_steps", "to_tolerance"):
        print(name, found[name], flush=True)


if __name__ == "__main__":
    main()
