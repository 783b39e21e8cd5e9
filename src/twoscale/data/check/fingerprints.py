"""What tells samples apart, so that those are found that occur twice."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

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
