"""What is wrong, odd or fine about a dataset, in sentences."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from twoscale.data.store import ARRAYS, Dataset
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.precision import few_digits
from twoscale.runtime.progress import Progress

_SOLUTION_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Finding:
    """One observation; `level` is ok, warning or error."""

    level: str
    message: str


class _Survey:
    """Running facts about the fields of one array."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bad: list[int] = []
        self.constant: list[int] = []
        self.low, self.high = np.inf, -np.inf
        self.spread = _Spread()

    def see(self, start: int, values: np.ndarray) -> None:
        finite = np.isfinite(values).all(axis=(1, 2))
        self.bad += [start + int(i) for i in np.flatnonzero(~finite)]
        if not finite.any():
            return
        low, high = values.min(axis=(1, 2)), values.max(axis=(1, 2))
        self.constant += [start + int(i) for i in np.flatnonzero(finite & (low == high))]
        self.low = min(self.low, float(low[finite].min()))
        self.high = max(self.high, float(high[finite].max()))
        self.spread.see(values[finite])

    def findings(self) -> Iterator[Finding]:
        if self.bad:
            yield Finding("error", f"{self.name}: NaN or infinite values in {_some(self.bad)}")
        else:
            yield Finding(
                "ok", f"{self.name}: all values finite, from {self.low:.4g} to {self.high:.4g}"
            )
        if self.constant:
            yield Finding("warning", f"{self.name}: constant fields in {_some(self.constant)}")
        if (problem := self.spread.problem()) is not None:
            yield Finding("warning", f"{self.name}: the fields {problem}")


class _Spread:
    """Means and deviations of the fields (batch, height, width) seen so far, node by node."""

    def __init__(self) -> None:
        self.count = 0

    def see(self, values: np.ndarray) -> None:
        if not self.count:
            # Sums of what fields are apart from the first one: an offset does not swamp them.
            self.first = values[0].astype(np.float64)
            self.sum = np.zeros_like(self.first)
            self.squares = np.zeros_like(self.first)
        apart = values - self.first
        self.count += len(values)
        self.sum += apart.sum(axis=0)
        self.squares += np.square(apart).sum(axis=0)

    def problem(self) -> str | None:
        """Return what is wrong with the deviation of all fields beside the largest mean."""
        if self.count < 2:
            return None
        mean = self.sum / self.count
        variance = float((self.squares / self.count - mean**2).mean())
        largest = float(np.abs(self.first + mean).max())
        return few_digits(largest, math.sqrt(max(variance, 0.0)))


def check_dataset(dataset: Dataset, *, progress: Progress | None = None) -> list[Finding]:
    """Return the findings on a dataset; every stored byte is read once."""
    checker = _Checker(dataset)
    for part in slices(dataset.samples, dataset.chunk):
        checker.see(part)
        if progress:
            progress("samples", part.stop, dataset.samples, "")
    return list(checker.findings())


class _Checker:
    """Sees a dataset chunk by chunk and then tells what it found."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.surveys = {name: _Survey(name) for name in ARRAYS}
        self.damaged: list[str] = []
        self.first_seen: dict[bytes, int] = {}
        self.repeats: list[int] = []
        self.distance = 0.0

    def see(self, part: slice) -> None:
        pair = {}
        for name in ARRAYS:
            values = self._read(name, part)
            if values is not None:
                pair[name] = values
                self.surveys[name].see(part.start, values)
        for sample, field in enumerate(pair.get("input", ()), part.start):
            digest = hashlib.blake2b(field.tobytes(), digest_size=16).digest()
            if self.first_seen.setdefault(digest, sample) != sample:
                self.repeats.append(sample)
        if len(pair) == len(ARRAYS) and self.dataset.problem is not None:
            self.distance = max(self.distance, _distance_to_solution(self.dataset.problem, pair))

    def _read(self, name: str, part: slice) -> np.ndarray | None:
        """Return a chunk, noting it as damaged if it cannot be read or has changed."""
        values = None
        try:
            values = self.dataset.read(name, part.start, part.stop, verify=False)
            intact = self.dataset.intact(name, part.start, values)
        except TwoscaleError:
            intact = False
        if not intact:
            self.damaged.append(f"{name} {part.start} to {part.stop - 1}")
        return values

    def findings(self) -> Iterator[Finding]:
        dataset = self.dataset
        yield Finding("ok", f"{dataset.samples} pairs of {dataset.grid} fields, {dataset.dtype}")
        name = dataset.metadata["problem"]
        if name and dataset.problem is None:
            yield Finding("warning", f"the problem '{name}' is not known here: nothing is solved")
        if self.damaged:
            places = _some(self.damaged)
            yield Finding("error", f"stored bytes do not match their checksums in {places}")
        else:
            yield Finding("ok", "stored bytes match their checksums")
        for survey in self.surveys.values():
            yield from survey.findings()
        if self.repeats:
            yield Finding(
                "warning", f"input: repetitions of earlier fields in {_some(self.repeats)}"
            )
        else:
            yield Finding("ok", "input: no field occurs twice")
        if dataset.problem is not None and not self.damaged:
            yield _solution_finding(dataset.problem, self.distance)


def _distance_to_solution(problem: Problem, pair: dict[str, np.ndarray]) -> float:
    """Return the relative distance of a chunk's first output to a fresh solution."""
    inputs, outputs = (torch.from_numpy(pair[name][:1]).double() for name in ARRAYS)
    if not (bool(torch.isfinite(inputs).all()) and bool(torch.isfinite(outputs).all())):
        return 0.0
    try:
        solved = problem.solve(inputs)
    except TwoscaleError:  # the problem has no solution for such an input
        return float("inf")
    return float((solved - outputs).norm() / solved.norm())


def _solution_finding(problem: Problem, distance: float) -> Finding:
    if distance > _SOLUTION_TOLERANCE:
        return Finding("error", f"outputs do not solve {problem.name}: {distance:.0e} off")
    message = f"outputs solve {problem.name}: spot checks agree with fresh solutions"
    return Finding("ok", f"{message} to {distance:.0e}")


def _some(items: list[Any]) -> str:
    shown = ", ".join(str(item) for item in items[:5])
    more = f" and {len(items) - 5} more" if len(items) > 5 else ""
    return f"{len(items)} place{'s' if len(items) != 1 else ''}: {shown}{more}"
