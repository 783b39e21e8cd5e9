"""One pass over a dataset, and the findings that follow from it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twoscale.data.check.axes import (
    Transposition,
    layout_findings,
    order_findings,
    periodic_findings,
)
from twoscale.data.check.channels import Channel, boundary_findings, scale_findings
from twoscale.data.check.equations import (
    distance_to_solution,
    solution_finding,
    symmetry_findings,
)
from twoscale.data.check.finding import Finding, some
from twoscale.data.check.samples import Fingerprints, Variety, leakage_between
from twoscale.data.places import UnreachableStorageError
from twoscale.data.split import split_samples
from twoscale.data.store import Dataset
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.progress import Progress


def check_dataset(
    dataset: Dataset, *, test: Dataset | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Return the findings on a dataset; every stored byte is read once, a chunk at a time.

    With a dataset `test`, its samples are looked for in the first one.
    """
    checker = _Checker(dataset)
    for part in slices(dataset.samples, dataset.chunk):
        checker.see(part)
        if progress:
            progress("samples", part.stop, dataset.samples, "")
    findings = list(checker.findings())
    if test is not None:
        findings.append(_leakage(checker.fingerprints, dataset, test))
    return findings


def _leakage(fingerprints: Fingerprints, dataset: Dataset, test: Dataset) -> Finding:
    """Return whether samples of a test set are in the dataset."""
    if test.input_space.shape != dataset.input_space.shape:
        inputs, tests = dataset.input_space.contents, test.input_space.contents
        seen = f"inputs are {inputs}, those of the test set {tests}"
        return Finding("error", "test_set", seen, "training and test data must agree")
    tested = Fingerprints()
    for part in slices(test.samples, test.chunk):
        values = {name: test.read(name, part.start, part.stop) for name in test.arrays}
        arrays = {name: _sides(test, name, one) for name, one in values.items()}
        tested.see(part.start, arrays)
    return leakage_between(fingerprints, tested, test.samples)


def _sides(dataset: Dataset, name: str, values: np.ndarray) -> np.ndarray:
    """Return values of an array as (batch, channels, height, width)."""
    return values.reshape(-1, *(*dataset.inner_shape(name), 1, 1)[:3])


def _channels(dataset: Dataset, name: str) -> list[Channel]:
    """Return the channels of an array, nothing seen yet; a single one is called like the array."""
    inputs, outputs = dataset.input_space, dataset.output_space
    shape = (*dataset.inner_shape(name), 1, 1)[:3]
    if name == "parameters":
        labels = [f"parameter '{one}'" for one in inputs.parameter_names]
    else:
        names = (outputs if name == "output" else inputs).channel_names[: shape[0]]
        labels = [name] if len(names) == 1 else [f"{name} '{one}'" for one in names]
    return [Channel(label, name, (shape[1], shape[2]), dataset.samples) for label in labels]


def _problem_to_solve(dataset: Dataset) -> Problem | None:
    """Return the dataset's problem if that can solve the inputs again."""
    problem = dataset.problem
    if problem is None or "parameters" in dataset.arrays:
        return None
    return problem if problem.solves(dataset.output_space.grid) else None


class _Checker:
    """Sees a dataset chunk by chunk and then tells what it found."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.problem = dataset.problem
        self.solved = _problem_to_solve(dataset)
        self.channels = {name: _channels(dataset, name) for name in dataset.arrays}
        self.variety = Variety(dataset.samples, int(np.prod(dataset.output_space.shape)))
        self.fingerprints = Fingerprints()
        self.transposition = Transposition(dataset)
        self.damaged: list[str] = []
        self.distance = 0.0

    def see(self, part: slice) -> None:
        arrays = {}
        for name in self.dataset.arrays:
            values = self._read(name, part)
            if values is not None:
                arrays[name] = _sides(self.dataset, name, values)
                for place, channel in enumerate(self.channels[name]):
                    channel.see(part.start, arrays[name][:, place])
        if len(arrays) < len(self.dataset.arrays):
            return
        self.variety.see(part.start, arrays["output"])
        self.fingerprints.see(part.start, arrays)
        if "input" in arrays:
            self.transposition.see(arrays["input"], arrays["output"])
        if self.solved is not None:
            self.distance = max(self.distance, distance_to_solution(self.solved, arrays))

    def _read(self, name: str, part: slice) -> np.ndarray | None:
        """Return a chunk, noting it as damaged if it cannot be read or has changed."""
        values = None
        try:
            values = self.dataset.read(name, part.start, part.stop, verify=False)
            intact = self.dataset.intact(name, part.start, values)
        except UnreachableStorageError:
            raise
        except TwoscaleError:
            intact = False
        if not intact:
            self.damaged.append(f"{name} {part.start} to {part.stop - 1}")
        return values

    def findings(self) -> Iterator[Finding]:
        yield from self._as_a_whole()
        for channels in self.channels.values():
            for channel in channels:
                yield from channel.findings()
            yield from scale_findings(channels)
        samples = self.dataset.samples
        split = split_samples(samples, seed=0) if samples >= 10 else None
        what = "field" if "input" in self.channels else "parameter set"
        yield from self.fingerprints.findings(split, what)
        yield from self.variety.findings()
        yield from self._on_structure()
        if self.solved is not None and not self.damaged:
            yield solution_finding(self.solved, self.distance)

    def _as_a_whole(self) -> Iterator[Finding]:
        dataset = self.dataset
        summary = f"{dataset.samples} pairs of {dataset.layout}, {dataset.dtype}"
        yield Finding("ok", "summary", summary)
        described = dataset.metadata["problem"]
        if described and self.problem is None:
            seen = f"the problem '{described['name']}' is not known here: solutions are not checked"
            yield Finding("warning", "problem", seen, "install the package that defines it")
        yield from layout_findings(dataset)
        if self.damaged and not dataset.has_checksums:
            seen = f"values cannot be read in {some(self.damaged)}"
            advice = "the file may be damaged; get or write it again"
            yield Finding("error", "unreadable", seen, advice)
        elif self.damaged:
            seen = f"stored bytes do not match their checksums in {some(self.damaged)}"
            yield Finding("error", "checksums", seen, "generate or import the dataset again")
        elif dataset.has_checksums:
            yield Finding("ok", "checksums", "stored bytes match their checksums")

    def _on_structure(self) -> Iterator[Finding]:
        """Yield what order of axes, periodic axes, symmetries and boundary look like."""
        every = [one for channels in self.channels.values() for one in channels]
        seen = [one for one in every if one.count]
        if not seen:
            return
        yield from order_findings(seen)
        yield from self.transposition.findings()
        periodic = self.dataset.output_space.grid.plane.periodic
        yield from periodic_findings(seen, periodic)
        if not self.damaged and not any(one.bad for one in every):
            yield from symmetry_findings(self.dataset)
        yield from boundary_findings([one for one in seen if one.side == "output"], periodic)
