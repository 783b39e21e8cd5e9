"""Findings on samples that occur twice: within a dataset, or in training and test."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np

from twoscale.data.check.finding import Finding, some
from twoscale.data.split import Split

_PROJECTIONS = 4
_CLOSE = 1e-6  # difference of two samples beside the deviations of all, along each projection
_NEIGHBOURS = 3  # next ones in the order of the first projection that a sample is compared with


class Fingerprints:
    """What tells samples apart: digests of their inputs, and a few random projections of them.

    Equal digests are equal inputs. Equal projections are inputs that agree up to rounding.
    """

    def __init__(self) -> None:
        self.digests: dict[bytes, int] = {}  # of inputs, with the first sample that has it
        self.outputs: dict[int, bytes] = {}  # of outputs, by the first sample with the same input
        self.repeats: list[tuple[int, int]] = []  # (first sample, sample with the same input)
        self.contradictions: list[int] = []  # samples whose input has another output elsewhere
        self.projections: list[np.ndarray] = []
        self.samples: list[int] = []
        self._directions: dict[str, np.ndarray] = {}

    def see(self, start: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Take note of the samples from `start` on, by the names of their arrays."""
        inputs = {name: values for name, values in arrays.items() if name != "output"}
        rows = [values.reshape(len(values), -1) for values in inputs.values()]
        for offset, parts in enumerate(zip(*rows, strict=True)):
            output = _digest([arrays["output"][offset]])
            self._remember(start + offset, _digest(parts), output)
        if "input" in inputs:
            projected = sum(
                (self._projected(name, values) for name, values in inputs.items()), start=0.0
            )
            self.projections.append(np.asarray(projected))
            self.samples += range(start, start + len(rows[0]))

    def _remember(self, sample: int, given: bytes, output: bytes) -> None:
        first = self.digests.setdefault(given, sample)
        if first == sample:
            self.outputs[sample] = output
            return
        self.repeats.append((first, sample))
        if self.outputs[first] != output:
            self.contradictions.append(sample)

    def _projected(self, name: str, values: np.ndarray) -> np.ndarray:
        rows = values.reshape(len(values), -1).astype(np.float64)
        if name not in self._directions:
            generator = np.random.default_rng(0)
            self._directions[name] = generator.standard_normal((rows.shape[1], _PROJECTIONS))
        return rows @ self._directions[name]

    @property
    def close(self) -> list[tuple[int, int]]:
        """Return pairs of samples whose inputs agree up to rounding, but not exactly."""
        if not self.projections:
            return []
        same = {repeat for _, repeat in self.repeats}
        places = [k for k, sample in enumerate(self.samples) if sample not in same]
        points = np.concatenate(self.projections)[places]
        pairs = close_pairs(points)
        numbers = np.array(self.samples)[places]
        return [(int(min(p)), int(max(p))) for p in numbers[pairs]] if len(pairs) else []

    def shared_with(self, other: Fingerprints) -> list[int]:
        """Return samples of another dataset whose inputs occur here, exactly or up to rounding."""
        exact = {first for digest, first in other.digests.items() if digest in self.digests}
        exact |= {repeat for first, repeat in other.repeats if first in exact}
        if self.projections and other.projections:
            mine, others = (np.concatenate(one.projections) for one in (self, other))
            pairs = np.sort(close_pairs(np.concatenate([mine, others])), axis=1)
            across = (pairs[:, 0] < len(mine)) & (pairs[:, 1] >= len(mine))
            exact |= {other.samples[k - len(mine)] for k in pairs[across, 1]}
        return sorted(exact)


def close_pairs(points: np.ndarray) -> np.ndarray:
    """Return the places (pairs, 2) of points that agree in every coordinate up to rounding."""
    spread = points.std(axis=0) if len(points) else np.zeros(1)
    if len(points) < 2 or not spread.all() or not np.isfinite(spread).all():
        return np.empty((0, 2), dtype=int)
    scaled = points / spread
    order = np.argsort(scaled[:, 0], kind="stable")
    found = []
    for ahead in range(1, min(_NEIGHBOURS, len(points) - 1) + 1):
        one, other = order[:-ahead], order[ahead:]
        close = (np.abs(scaled[one] - scaled[other]) < _CLOSE).all(axis=1)
        found.append(np.stack([one[close], other[close]], axis=1))
    return np.concatenate(found)


def duplicate_findings(
    seen: Fingerprints, split: Split | None, what: str = "field"
) -> Iterator[Finding]:
    """Yield findings on inputs that occur twice; `split` is the usual one with seed 0."""
    repeats = [repeat for _, repeat in seen.repeats]
    close = seen.close
    if repeats:
        yield Finding(
            "warning",
            "duplicates",
            f"input: repetitions of earlier {what}s in {some(repeats, 'sample')}",
            "leave them out, they add nothing and may be in training and test",
        )
    if close:
        yield Finding(
            "warning",
            "near_duplicates",
            f"input: {what}s that repeat earlier ones up to rounding in "
            f"{some(sorted({repeat for _, repeat in close}), 'sample')}",
            "leave them out, they add nothing and may be in training and test",
        )
    if not repeats and not close:
        yield Finding("ok", "duplicates", f"input: no {what} occurs twice")
    if seen.contradictions:
        yield Finding(
            "warning",
            "contradictions",
            "equal inputs have different outputs in " + some(seen.contradictions, "sample"),
            "give what differs between them as another input channel or parameter",
        )
    if split is not None:
        yield from _leakage(seen.repeats + close, split)


def _leakage(pairs: list[tuple[int, int]], split: Split) -> Iterator[Finding]:
    """Yield a warning if test samples also train."""
    training, test = set(split.training.tolist()), set(split.test.tolist())
    both_ways = [*pairs, *((other, one) for one, other in pairs)]
    leaked = sorted({other for one, other in both_ways if one in training and other in test})
    if leaked:
        yield Finding(
            "warning",
            "leakage",
            f"{some(leaked, 'test sample')} of the default split with seed 0 also occur in the "
            "training samples",
            "the test error is too small then; leave the repetitions out before you fit",
        )


def leakage_between(training: Fingerprints, test: Fingerprints, count: int) -> Finding:
    """Return whether the samples of a test set also occur in the training set."""
    shared = training.shared_with(test)
    if not shared:
        return Finding("ok", "leakage", f"no input of the {count} test samples is in the data")
    return Finding(
        "warning",
        "leakage",
        f"inputs of {some(shared, 'test sample')} are also in the data, exactly or up to rounding",
        "the test error is too small then; leave them out of one of the two",
    )


def _digest(parts: list[np.ndarray] | tuple[np.ndarray, ...]) -> bytes:
    return hashlib.blake2b(b"".join(one.tobytes() for one in parts), digest_size=16).digest()
