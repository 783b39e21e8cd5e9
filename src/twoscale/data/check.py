"""What is wrong, odd or fine about a dataset, in sentences."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from twoscale.data.description import SIDES
from twoscale.data.importing import channels_last_hint
from twoscale.data.store import Dataset
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.memory import is_out_of_memory
from twoscale.runtime.precision import precision_problem
from twoscale.runtime.progress import Progress

_SOLUTION_TOLERANCE = 1e-4
_SCALES_APART = 1e3  # ratio of two channels' largest values that is worth a word


@dataclass(frozen=True)
class Finding:
    """One observation; `level` is ok, warning or error."""

    level: str
    message: str


class _Survey:
    """Running facts about the channels of one array, seen as (batch, channels, height, width)."""

    def __init__(self, labels: Sequence[str], nodes: int) -> None:
        self.labels = labels
        self.nodes = nodes
        self.bad: list[list[int]] = [[] for _ in labels]
        self.constant: list[list[int]] = [[] for _ in labels]
        self.low = np.full(len(labels), np.inf)
        self.high = np.full(len(labels), -np.inf)
        self.spreads = [_Spread() for _ in labels]

    def see(self, start: int, values: np.ndarray) -> None:
        for channel in range(len(self.labels)):
            self._see(channel, start, values[:, channel])

    def _see(self, channel: int, start: int, values: np.ndarray) -> None:
        """Take note of the fields (batch, height, width) of one channel."""
        finite = np.isfinite(values).all(axis=(1, 2))
        self.bad[channel] += [start + int(i) for i in np.flatnonzero(~finite)]
        if not finite.any():
            return
        low, high = values.min(axis=(1, 2)), values.max(axis=(1, 2))
        if self.nodes > 1:
            constant = np.flatnonzero(finite & (low == high))
            self.constant[channel] += [start + int(i) for i in constant]
        self.low[channel] = min(self.low[channel], float(low[finite].min()))
        self.high[channel] = max(self.high[channel], float(high[finite].max()))
        self.spreads[channel].see(values[finite])

    def findings(self) -> Iterator[Finding]:
        for channel, label in enumerate(self.labels):
            yield from self._channel_findings(channel, label)
        scales = np.maximum(np.abs(self.low), np.abs(self.high))
        sound = np.flatnonzero(np.isfinite(scales) & (scales > 0))
        if len(sound) < 2:
            return
        least, most = sound[scales[sound].argmin()], sound[scales[sound].argmax()]
        if scales[most] > _SCALES_APART * scales[least]:
            yield Finding(
                "ok",
                f"{self.labels[least]} has values up to {scales[least]:.0e}, {self.labels[most]} "
                f"up to {scales[most]:.0e}: each channel is scaled on its own",
            )

    def _channel_findings(self, channel: int, label: str) -> Iterator[Finding]:
        low, high = self.low[channel], self.high[channel]
        if self.bad[channel]:
            yield Finding("error", f"{label}: NaN or infinite values in {_some(self.bad[channel])}")
        else:
            yield Finding("ok", f"{label}: all values finite, from {low:.4g} to {high:.4g}")
        if self.constant[channel] and low != high:
            yield Finding("warning", f"{label}: constant fields in {_some(self.constant[channel])}")
        if (problem := self.spreads[channel].problem()) is not None:
            what = "fields" if self.nodes > 1 else "values"
            yield Finding("warning", f"{label}: the {what} {problem}")


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
        return precision_problem(largest, math.sqrt(max(variance, 0.0)))


def _labels(name: str, dataset: Dataset) -> list[str]:
    """Return how to call the channels of an array; a single channel is called like its array."""
    given, found = dataset.input_space, dataset.output_space
    if name == "parameters":
        return [f"parameter '{one}'" for one in given.channel_names[given.field_channels :]]
    names = (found if name == "output" else given).channel_names
    names = names[: dataset.inner_shape(name)[0]]
    return [name] if len(names) == 1 else [f"{name} '{one}'" for one in names]


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
        self.problem = dataset.problem
        self.surveys = {
            name: _Survey(_labels(name, dataset), math.prod(dataset.inner_shape(name)[1:]))
            for name in dataset.arrays
        }
        self.damaged: list[str] = []
        self.first_seen: dict[bytes, int] = {}
        self.repeats: list[int] = []
        self.distance = 0.0

    def see(self, part: slice) -> None:
        arrays = {}
        for name in self.dataset.arrays:
            values = self._read(name, part)
            if values is not None:
                sides = (*self.dataset.inner_shape(name), 1, 1)[:3]
                arrays[name] = values.reshape(-1, *sides)
                self.surveys[name].see(part.start, arrays[name])
        if len(arrays) < len(self.dataset.arrays):
            return
        known = [values for name, values in arrays.items() if name != "output"]
        for offset, parts in enumerate(zip(*known, strict=True)):
            self._remember(part.start + offset, parts)
        if self.problem is not None and "parameters" not in arrays:
            self.distance = max(self.distance, _distance_to_solution(self.problem, arrays))

    def _remember(self, sample: int, parts: Sequence[np.ndarray]) -> None:
        """Take note of one sample's input, and of whether it was seen before."""
        digest = hashlib.blake2b(b"".join(one.tobytes() for one in parts), digest_size=16).digest()
        if self.first_seen.setdefault(digest, sample) != sample:
            self.repeats.append(sample)

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
        yield Finding("ok", f"{dataset.samples} pairs of {dataset.layout}, {dataset.dtype}")
        described = dataset.metadata["problem"]
        if described and self.problem is None:
            yield Finding(
                "warning",
                f"the problem '{described['name']}' is not known here: nothing is solved",
            )
        yield from layout_findings(dataset)
        if self.damaged:
            places = _some(self.damaged)
            yield Finding("error", f"stored bytes do not match their checksums in {places}")
        else:
            yield Finding("ok", "stored bytes match their checksums")
        for survey in self.surveys.values():
            yield from survey.findings()
        what = "field" if "input" in dataset.arrays else "parameter set"
        if self.repeats:
            yield Finding(
                "warning", f"input: repetitions of earlier {what}s in {_some(self.repeats)}"
            )
        else:
            yield Finding("ok", f"input: no {what} occurs twice")
        if self.problem is not None and not self.damaged and not dataset.input_space.parameters:
            yield _solution_finding(self.problem, self.distance)


def layout_findings(dataset: Dataset) -> Iterator[Finding]:
    """Yield a warning of each side whose axes look as if they were in another order."""
    for name, shape in dataset.layout.sample_shapes.items():
        hint = channels_last_hint((dataset.samples, *shape))
        if hint is not None:
            yield Finding("warning", f"{name}: {hint}")


def _distance_to_solution(problem: Problem, arrays: dict[str, np.ndarray]) -> float:
    """Return the relative distance of a chunk's first output to a fresh solution."""
    inputs, outputs = (torch.from_numpy(arrays[name][:1]).double() for name in SIDES)
    if not (bool(torch.isfinite(inputs).all()) and bool(torch.isfinite(outputs).all())):
        return 0.0
    given = inputs[:, 0] if inputs.shape[1] == 1 else inputs
    try:
        solved = problem.solve(given)
    except (ValueError, RuntimeError, IndexError) as error:  # no solution for such an input
        if is_out_of_memory(error):
            raise
        return float("inf")
    if solved.numel() != outputs.numel():
        return float("inf")
    return float((solved.reshape(outputs.shape) - outputs).norm() / solved.norm())


def _solution_finding(problem: Problem, distance: float) -> Finding:
    if distance > _SOLUTION_TOLERANCE:
        return Finding("error", f"outputs do not solve {problem.name}: {distance:.0e} off")
    message = f"outputs solve {problem.name}: spot checks agree with fresh solutions"
    return Finding("ok", f"{message} to {distance:.0e}")


def _some(items: list[Any]) -> str:
    shown = ", ".join(str(item) for item in items[:5])
    more = f" and {len(items) - 5} more" if len(items) > 5 else ""
    return f"{len(items)} place{'s' if len(items) != 1 else ''}: {shown}{more}"
