"""Findings on the samples: enough for the variety of outputs, and none that occurs twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from twoscale.data.check.finding import Finding, some
from twoscale.data.split import Split, largest_training

_SUBSET = 256  # samples that the variety is judged by
_VALUES = 2**23  # numbers of them that are kept at most
_SHARE = 0.99  # of the variance
_EACH = 3  # training samples for each number of a code, at least
_PROJECTIONS = 4
_CLOSE = 1e-6  # difference of two samples beside the deviations of all, along each projection
_NEIGHBOURS = 3  # next ones in the order of the first projection that a sample is compared with
_LEAVE_OUT = "leave them out, they add nothing and may be in training and test"


class Variety:
    """Some outputs, evenly spread over the dataset, to see how many numbers describe them."""

    def __init__(self, samples: int, values: int) -> None:
        self.samples = samples
        kept = max(2, min(_SUBSET, _VALUES // values))
        self.stride = max(1, -(-samples // kept))
        self.rows: list[np.ndarray] = []

    def see(self, start: int, outputs: np.ndarray) -> None:
        """Take note of outputs (batch, channels, height, width)."""
        first = -start % self.stride
        self.rows += [row.astype(np.float64) for row in outputs[first :: self.stride]]

    @property
    def numbers(self) -> int:
        """Return how many PCA coordinates hold 99 % of the variance of the outputs seen.

        Each channel counts alike.
        """
        fields = np.stack([row for row in self.rows if np.isfinite(row).all()])
        apart = fields - fields.mean(axis=0)
        size = np.square(apart).mean(axis=(0, 2, 3), keepdims=True)
        flat = (apart / np.sqrt(np.where(size > 0, size, 1.0))).reshape(len(fields), -1)
        spectrum = np.linalg.eigvalsh(flat @ flat.T)[::-1].clip(0)
        if not spectrum.sum():
            return 0
        return int(np.searchsorted(np.cumsum(spectrum), _SHARE * spectrum.sum())) + 1

    def findings(self) -> Iterator[Finding]:
        if sum(np.isfinite(row).all() for row in self.rows) < 2:
            return
        numbers, training = self.numbers, largest_training(self.samples)
        least = "at least " if numbers > len(self.rows) / 2 else ""
        seen = (
            f"{least}{numbers} numbers hold 99 % of the outputs' variance, and {training} samples"
        )
        level, advice = "ok", ""
        if training < _EACH * numbers:
            fewer = f"fewer than {_EACH} samples for each number"
            level, advice = "warning", f"{fewer}: expect the error to fall with more samples"
        yield Finding(level, "samples", f"{seen} train", advice)


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
            projected = [self._projected(name, values) for name, values in inputs.items()]
            self.projections.append(np.sum(projected, axis=0))
            self.samples += range(start, start + len(rows[0]))

    def _remember(self, sample: int, digest: bytes, output: bytes) -> None:
        first = self.digests.setdefault(digest, sample)
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
        pairs = close_pairs(np.concatenate(self.projections)[places])
        numbers = np.array(self.samples)[places]
        return [(int(min(pair)), int(max(pair))) for pair in numbers[pairs]]

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

    def findings(self, split: Split | None, what: str) -> Iterator[Finding]:
        """Yield findings on inputs that occur twice; `split` is the usual one with seed 0."""
        repeats, close = [repeat for _, repeat in self.repeats], self.close
        if repeats:
            seen = f"input: repetitions of earlier {what}s in {some(repeats, 'sample')}"
            yield Finding("warning", "duplicates", seen, _LEAVE_OUT)
        if close:
            those = some(sorted({repeat for _, repeat in close}), "sample")
            seen = f"input: {what}s that repeat earlier ones up to rounding in {those}"
            yield Finding("warning", "near_duplicates", seen, _LEAVE_OUT)
        if not repeats and not close:
            yield Finding("ok", "duplicates", f"input: no {what} occurs twice")
        if self.contradictions:
            seen = f"equal inputs have different outputs in {some(self.contradictions, 'sample')}"
            advice = "give what differs between them as another input channel or parameter"
            yield Finding("warning", "contradictions", seen, advice)
        if split is None:
            return
        training, test = set(split.training.tolist()), set(split.test.tolist())
        pairs = self.repeats + close
        both_ways = [*pairs, *((other, one) for one, other in pairs)]
        leaked = sorted({other for one, other in both_ways if one in training and other in test})
        if leaked:
            tests = some(leaked, "test sample")
            seen = f"{tests} of the default split with seed 0 also occur in the training samples"
            advice = "the test error is too small then; leave the repetitions out before you fit"
            yield Finding("warning", "leakage", seen, advice)


def leakage_between(training: Fingerprints, test: Fingerprints, count: int) -> Finding:
    """Return whether the samples of a test set also occur in the training set."""
    shared = training.shared_with(test)
    if not shared:
        return Finding("ok", "leakage", f"no input of the {count} test samples is in the data")
    tests = some(shared, "test sample")
    seen = f"inputs of {tests} are also in the data, exactly or up to rounding"
    advice = "the test error is too small then; leave them out of one of the two"
    return Finding("warning", "leakage", seen, advice)


def close_pairs(points: np.ndarray) -> np.ndarray:
    """Return the places (pairs, 2) of points that agree in every coordinate up to rounding."""
    spread = points.std(axis=0) if len(points) else np.zeros(1)
    if len(points) < 2 or not spread.all() or not np.isfinite(spread).all():
        return np.empty((0, 2), dtype=int)
    scaled = points / spread
    order = np.argsort(scaled[:, 0], kind="stable")
    pairs = []
    for ahead in range(1, min(_NEIGHBOURS, len(points) - 1) + 1):
        one, other = order[:-ahead], order[ahead:]
        close = (np.abs(scaled[one] - scaled[other]) < _CLOSE).all(axis=1)
        pairs.append(np.stack([one[close], other[close]], axis=1))
    return np.concatenate(pairs)


def _digest(parts: Sequence[np.ndarray]) -> bytes:
    return hashlib.blake2b(b"".join(one.tobytes() for one in parts), digest_size=16).digest()
