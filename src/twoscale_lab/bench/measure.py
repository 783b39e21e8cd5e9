"""Measure the ratio of two times, and keep it with what it was measured on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from statistics import median
from typing import Any, TypeVar

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError, unknown_name
from twoscale.fields.workers import Cluster
from twoscale.problems import Problem
from twoscale.runtime.progress import Progress, now
from twoscale_lab.names import BENCHMARKS, SCALES

Result = TypeVar("Result")

FieldPair = tuple[Tensor, Tensor]
"""Inputs and outputs (samples, height, width)."""


@dataclass(frozen=True)
class Setup:
    """Device and sizes: `scale` is "paper", or "small" for a quick try and for tests.

    Some benchmarks are shared by `workers`.
    """

    device: torch.device
    scale: str = "paper"
    progress: Progress | None = None
    workers: Cluster | None = None

    @property
    def cuda(self) -> bool:
        return self.device.type == "cuda"

    def size(self, small: int, paper: int, *, gpu: int | None = None) -> int:
        """Return the size for this scale; `gpu` replaces `paper` on a GPU."""
        if self.scale == "small":
            return small
        return gpu if gpu is not None and self.cuda else paper

    def fields(self, problem: Problem, resolution: int, samples: int) -> tuple[Tensor, Tensor]:
        """Return pairs of fields on the device, float32."""
        grid = problem.grid(resolution, resolution)
        inputs, outputs = [], []
        for start in range(0, samples, 512):
            indices = range(start, min(start + 512, samples))
            given, found = problem.pairs(grid, indices, seed=0, device=self.device)
            inputs.append(given.float())
            outputs.append(found.float())
        return torch.cat(inputs), torch.cat(outputs)

    def pairs(
        self, problem: Problem, resolution: int, samples: int, held: int
    ) -> tuple[FieldPair, FieldPair]:
        """Return training pairs and held-out pairs of fields on the device, float32."""
        x, u = self.fields(problem, resolution, samples + held)
        return (x[:samples], u[:samples]), (x[samples:], u[samples:])

    def report(self, name: str, done: int, total: int, remark: str = "") -> None:
        if self.progress:
            self.progress(name, done, total, remark)


@dataclass(frozen=True)
class Comparison:
    """Seconds per unit of work, ours and the peer's, and the agreement of their results."""

    name: str
    peer: str
    unit: str
    seconds: list[float]
    peer_seconds: list[float]
    agreement: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the unit of the numbers: seconds per unit of work, or gigabytes."""
        return "GB" if self.unit == "gigabyte" else f"s/{self.unit}"

    @property
    def ratio(self) -> float:
        """Return how many times as long the peer takes, median over median."""
        return median(self.peer_seconds) / median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """Return the least and the most favourable ratio of any two repeats."""
        return (
            min(self.peer_seconds) / max(self.seconds),
            max(self.peer_seconds) / min(self.seconds),
        )

    @property
    def texts(self) -> list[str]:
        """Return name, peer, our time, the peer's, their ratio and the agreement of results."""
        agreement = [f"{k.replace('_', ' ')} {value:.3g}" for k, value in self.agreement.items()]
        return [
            self.name,
            self.peer,
            f"{median(self.seconds):.3g} {self.label}",
            f"{median(self.peer_seconds):.3g}",
            f"{self.ratio:.3g}",
            ", ".join(agreement),
        ]

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Comparison:
        """Return the comparison that `as_dict` wrote."""
        return cls(**{one.name: content[one.name] for one in fields(cls)})

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "spread": list(self.spread)}


def relative(a: Tensor, b: Tensor) -> float:
    """Return ||a - b|| / ||b||."""
    return float((a - b).norm() / b.norm())


class Laps:
    """Seconds per epoch: call it after each. The first epoch includes preparation."""

    def __init__(self) -> None:
        self.times = [now()]

    def __call__(self, *_: Any) -> None:
        self.times.append(now())

    @property
    def first(self) -> float:
        return self.times[1] - self.times[0]

    @property
    def later(self) -> float:
        """Return the mean of all but the first."""
        return (self.times[-1] - self.times[1]) / (len(self.times) - 2)


def stopwatch(function: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds of a call, until the device has finished, and its result."""
    start = now()
    result = function()
    return now() - start, result


def compare(
    name: str,
    peer: str,
    ours: Callable[[], Result],
    theirs: Callable[[], Any],
    *,
    unit: str,
    units: tuple[float, float] = (1, 1),
    repeats: int = 3,
    agreement: Callable[[Result, Any], dict[str, float]] | None = None,
    details: dict[str, Any] | None = None,
) -> Comparison:
    """Run both alternately, `repeats` times each; `units` is the work in one call of each."""
    ours()  # a first call, not timed; the peer loads its libraries when it is prepared
    seconds: tuple[list[float], list[float]] = ([], [])
    results: list[Any] = [None, None]
    for _ in range(repeats):
        for side, function in enumerate((ours, theirs)):
            taken, results[side] = stopwatch(function)
            seconds[side].append(taken / units[side])
    found = agreement(*results) if agreement else {}
    return Comparison(name, peer, unit, *seconds, found, details or {})


def run_benchmarks(names: Sequence[str], setup: Setup) -> Iterator[Comparison]:
    """Run some benchmarks, all of them if none is named."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise unknown_name("benchmark", unknown[0], BENCHMARKS)
    if setup.scale not in SCALES:
        raise TwoscaleError(f"the scale is small or paper, got '{setup.scale}'")
    chosen = list(names) or list(BENCHMARKS)
    if setup.workers is not None and chosen != ["scaling"]:
        raise TwoscaleError("workers share the benchmark scaling only: twoscale bench scaling")
    for done, name in enumerate(chosen):
        setup.report("benchmarks", done, len(chosen), name)
        module, _, function = BENCHMARKS[name].partition(".")
        yield from getattr(import_module(f"twoscale_lab.bench.{module}"), function)(setup)
    setup.report("benchmarks", len(chosen), len(chosen))
