"""How often radii hold on fresh fields, how wide they are, and which shifted inputs are flagged.

python scripts/trust_record.py --size paper --out results/trust.json

Four methods are fitted on fields of three problems and calibrated on others. Radii are then
compared with the true errors of fresh fields. It needs torch, NumPy and SciPy, and no dataset.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from records import write_record
from torch import Tensor

from twoscale import Darcy, NavierStokes, Poisson, Problem, Surrogate
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.samples import as_samples
from twoscale.fields.source import Batch, slices
from twoscale.problems.random_field import GaussianRandomField
from twoscale.runtime.progress import now
from twoscale.surrogate.options import resolve_device
from twoscale.trust import LEVEL, Coverage
from twoscale.trust.band import relative_to_prediction
from twoscale.trust.statistics import conformal_quantile

Fields = tuple[Tensor, Tensor]
NOISE = 0.2  # of the inputs' standard deviation
_PART = 500  # fresh fields that are looked at together


@dataclass(frozen=True)
class Size:
    """How large the fields are, how many there are, and the settings of each method."""

    side: int
    training: int
    validation: int
    calibration: int
    fresh: int
    shifted: int
    settings: dict[str, dict[str, Any]]

    def parts(self) -> dict[str, range]:
        """Return the numbers of the samples of each part."""
        found, start = {}, 0
        for name in ("training", "validation", "calibration", "fresh"):
            found[name] = range(start, start + getattr(self, name))
            start = found[name].stop
        return found


_FEW = {"patches": 2, "coarse_components": 10}
SIZES = {
    "small": Size(
        side=16,
        training=600,
        validation=200,
        calibration=1000,
        fresh=2000,
        shifted=300,
        settings={
            "two-scale": {"epochs": 40, **_FEW},
            "two-scale affine": {"predictor": "affine", **_FEW},
            "two-scale encoder": {"predictor": "encoder", "epochs": 4, "width": 8, **_FEW},
            "fno": {"epochs": 4, "layers": 2, "width": 8, "modes": 5, "padding": 2},
        },
    ),
    "paper": Size(
        side=64,
        training=4000,
        validation=500,
        calibration=10_000,
        fresh=5000,
        shifted=1000,
        settings={
            "two-scale": {},
            "two-scale affine": {"predictor": "affine"},
            "two-scale encoder": {"predictor": "encoder"},
            "fno": {},
        },
    ),
}
PROBLEMS: dict[str, Problem] = {
    "poisson": Poisson(),
    "darcy": Darcy(),
    "navier-stokes": NavierStokes(),
}
CASES = (("poisson", True), ("darcy", True), ("darcy", False), ("navier-stokes", False))
"""Problems, and whether the surrogate is told the equation."""


@dataclass(frozen=True)
class Data:
    """Pairs of a problem by part, (samples, 1, height, width) in float32."""

    problem: Problem
    parts: dict[str, Fields]

    @classmethod
    def of(cls, problem: Problem, size: Size, device: torch.device) -> Data:
        grid = problem.grid(size.side, size.side)
        found = {}
        for name, samples in size.parts().items():
            pairs = problem.pairs(grid, samples, seed=0, device=device)
            found[name] = (pairs[0].float()[:, None], pairs[1].float()[:, None])
        return cls(problem, found)

    def pairs(self, name: str) -> Pairs:
        """Return a part as `Surrogate` has it inside."""
        periodic = self.problem.periodic
        inputs, outputs = self.parts[name]
        return Pairs(
            as_samples(inputs, "input", periodic=periodic),
            as_samples(outputs, "output", periodic=periodic),
        )


def shifts(problem: Problem, size: Size, fresh: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield inputs unlike the training inputs, by name; `fresh` ones are like them."""
    generator = torch.Generator(fresh.device).manual_seed(0)
    noise = torch.randn(fresh.shape, generator=generator, device=fresh.device)
    means = fresh.mean((1, 2, 3), keepdim=True)
    yield f"noise of {NOISE:.0%}", fresh + NOISE * fresh.std() * noise
    yield "constant", means.expand_as(fresh)
    yield "1.5 times as large", means + 1.5 * (fresh - means)

    def drawn(other: Problem) -> Tensor:
        grid = other.grid(size.side, size.side)
        fields = other.sample(grid, range(len(fresh)), seed=1, device=fresh.device)
        return fields.float()[:, None]

    rough = GaussianRandomField(tau=20.0)
    if isinstance(problem, Darcy):
        yield "correlation tau 20, not 3", drawn(replace(problem, medium=rough))
        yield "contrast 4, not 3", drawn(replace(problem, high=12.0, low=3.0))
        yield "contrast 10, not 3", drawn(replace(problem, high=20.0, low=2.0))
    elif isinstance(problem, Poisson):
        yield "correlation tau 20, not 3", drawn(replace(problem, forcing=rough))
        smooth = GaussianRandomField(alpha=3.0)
        yield "smoothness alpha 3, not 2", drawn(replace(problem, forcing=smooth))
    else:
        yield "half the correlation length", fresh[..., ::2, ::2].repeat(1, 1, 2, 2)


def fitted(name: str, data: Data, size: Size, device: torch.device) -> Surrogate:
    """Return a method fitted on the training pairs, without any trust yet."""
    method = name.split()[0]
    surrogate = Surrogate(method, problem=data.problem, device=device, **size.settings[name])
    inputs, outputs = data.parts["training"]
    return surrogate.fit(inputs, outputs, validation=data.parts["validation"], calibration=False)


def covered(surrogate: Surrogate, data: Data) -> dict[str, Any]:
    """Return how often radii hold on fresh fields, and how wide they are on average.

    `unscaled` is one radius for all samples: the conformal quantile of the calibration errors.
    """
    assert surrogate.trust_ is not None
    assert surrogate.trust_.band is not None
    counts = Coverage(surrogate.trust_, surrogate.operator_, surrogate.problem)
    errors = []
    for inputs, truth in _parts(data.parts["fresh"]):
        predicted = surrogate.predict_batch(Batch.of(inputs))
        counts.observe(Batch.of(inputs), predicted, truth)
        errors.append(relative_to_prediction(predicted, truth))
    unscaled = conformal_quantile(_errors(surrogate, data.parts["calibration"]), LEVEL)
    found = torch.cat(errors)
    scaled = counts.metrics["mean_radius"]
    return {
        "mean_error": float(found.mean()),
        **counts.metrics,
        "powers": surrogate.trust_.band.powers.tolist(),
        "unscaled": {
            "radius": unscaled,
            "coverage": float((found <= unscaled).double().mean()),
        },
        "narrower_by": 1 - scaled / unscaled,
    }


def _parts(fields: Fields) -> Iterator[Fields]:
    for part in slices(len(fields[0]), _PART):
        yield fields[0][part], fields[1][part]


def _errors(surrogate: Surrogate, fields: Fields) -> Tensor:
    return torch.cat(
        [
            relative_to_prediction(surrogate.predict_batch(Batch.of(inputs)), truth)
            for inputs, truth in _parts(fields)
        ]
    )


def flagged(surrogate: Surrogate, data: Data, size: Size) -> dict[str, float]:
    """Return the share of inputs that are flagged: fresh ones, and shifted ones by name."""
    assert surrogate.trust_ is not None
    known, fresh = surrogate.trust_.known, data.parts["fresh"][0]

    def share(fields: Tensor) -> float:
        seen = [known(Batch.of(fields[part])).outside for part in slices(len(fields), _PART)]
        return float(torch.cat(seen).double().mean())

    others = shifts(data.problem, size, fresh[: size.shifted])
    return {"fresh": share(fresh)} | {name: share(fields) for name, fields in others}


def cost(surrogate: Surrogate, inputs: Tensor) -> dict[str, float]:
    """Return the seconds of predictions and of flags, per field, and their ratio."""
    assert surrogate.trust_ is not None
    each = {
        name: _seconds(work, Batch.of(inputs)) / len(inputs)
        for name, work in (
            ("prediction", surrogate.predict_batch),
            ("flags", surrogate.trust_.known),
        )
    }
    return each | {"ratio": each["flags"] / each["prediction"]}


def _seconds(work: Callable[[Batch], Any], inputs: Batch) -> float:
    """Return the least time of five calls, after a first one."""
    work(inputs)
    least = math.inf
    for _ in range(5):
        start = now()
        work(inputs)
        least = min(least, now() - start)
    return least


_PARTS = ("training", "validation", "calibration")


@torch.no_grad()
def measure(size: Size, device: torch.device) -> Iterator[dict[str, Any]]:
    """Yield coverages of all methods and cases, flags and costs, after each problem."""
    coverages: list[dict[str, Any]] = []
    flags: dict[str, dict[str, float]] = {}
    for name, problem in PROBLEMS.items():
        data = Data.of(problem, size, device)
        for method in size.settings:
            with torch.enable_grad():
                surrogate = fitted(method, data, size, device)
            for known in [equation for one, equation in CASES if one == name]:
                told = surrogate.with_problem(problem if known else None)
                told.learn_trust(SplitData(*map(data.pairs, _PARTS)))
                row = {"problem": name, "equation": known, "method": method}
                row |= covered(told, data)
                row["seconds"] = cost(told, data.parts["fresh"][0][:_PART])
                coverages.append(row)
                flags.setdefault(name, flagged(told, data, size))
                print(_line(row), flush=True)
        print(name, flags[name], flush=True)
        spread = (LEVEL * (1 - LEVEL) * (1 / size.calibration + 1 / size.fresh)) ** 0.5
        yield {
            "level": LEVEL,
            "standard_deviation_of_coverage": spread,
            "coverage": coverages,
            "flags": flags,
        }


def _line(row: dict[str, Any]) -> str:
    known = "with" if row["equation"] else "without"
    return (
        f"{row['problem']} {known} its equation, {row['method']}: error {row['mean_error']:.3g}, "
        f"covered {row['coverage']:.4f} (nodes {row['band_coverage']:.4f}), mean radius "
        f"{row['mean_radius']:.3g}, narrower by {row['narrower_by']:.2f}, flags / prediction "
        f"{row['seconds']['ratio']:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    device = resolve_device(given.device)
    for found in measure(SIZES[given.size], device):
        record = {
            "size": asdict(SIZES[given.size]),
            **found,
        }
        write_record(given.out, record, device=device)


if __name__ == "__main__":
    main()
