"""Numbers about the channels of a dataset, collected chunk by chunk in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

_KEPT_VALUES = 2**15  # of each channel, for quantiles


@dataclass
class Axis:
    """Sums of squared differences along one axis of the fields of a channel."""

    neighbours: float = 0.0  # of neighbouring nodes
    bends: float = 0.0  # second differences inside
    wrapped_bends: float = 0.0  # second differences across the two ends, as if they were neighbours
    ends: float = 0.0  # of the first and the last node

    def see(self, values: np.ndarray) -> None:
        """Take note of values (lines, nodes); every sum is one of means over a line."""
        steps = np.diff(values, axis=1)
        self.neighbours += float(np.square(steps).mean(axis=1).sum())
        if values.shape[1] > 3:
            self.bends += float(np.square(np.diff(steps, axis=1)).mean(axis=1).sum())
            end = values[:, 0] - values[:, -1]  # the step across the ends
            across = np.stack([end - steps[:, -1], steps[:, 0] - end])
            self.wrapped_bends += float(np.square(across).mean(axis=0).sum())
            self.ends += float(np.square(end).sum())


@dataclass
class Channel:
    """What was seen of one channel: fields (height, width) of all samples, or a parameter."""

    label: str  # such as "input 'a'"
    side: str  # input, output or parameters
    shape: tuple[int, int]
    samples: int  # of the dataset
    bad: list[int] = field(default_factory=list)  # samples with values that are not finite
    constant: list[int] = field(default_factory=list)  # samples whose field is constant
    low: float = math.inf
    high: float = -math.inf
    count: int = 0  # finite samples
    axes: tuple[Axis, Axis] = field(default_factory=lambda: (Axis(), Axis()))
    steps: float = 0.0  # squared differences of consecutive samples, means over the nodes
    pairs: int = 0  # of consecutive samples
    values: list[np.ndarray] = field(default_factory=list)  # some, for quantiles

    @property
    def nodes(self) -> int:
        return math.prod(self.shape)

    def see(self, start: int, values: np.ndarray) -> None:
        """Take note of the fields (batch, height, width) that start at a sample."""
        finite = np.isfinite(values).all(axis=(1, 2))
        self.bad += [start + int(i) for i in np.flatnonzero(~finite)]
        if not finite.any():
            return
        low, high = values.min(axis=(1, 2)), values.max(axis=(1, 2))
        if self.nodes > 1:
            constant = np.flatnonzero(finite & (low == high))
            self.constant += [start + int(i) for i in constant]
        self.low = min(self.low, float(low[finite].min()))
        self.high = max(self.high, float(high[finite].max()))
        sound = values[finite].astype(np.float64)
        self._add_moments(sound)
        self._add_differences(sound)
        stride = max(1, self.samples * self.nodes // _KEPT_VALUES)
        self.values.append(sound.ravel()[::stride])

    def _add_moments(self, values: np.ndarray) -> None:
        if not self.count:
            # Sums of what fields are apart from the first one: an offset does not swamp them.
            self.first = values[0]
            self.sum = np.zeros_like(self.first)
            self.squares = np.zeros_like(self.first)
        apart = values - self.first
        self.count += len(values)
        self.sum += apart.sum(axis=0)
        self.squares += np.square(apart).sum(axis=0)

    def _add_differences(self, values: np.ndarray) -> None:
        if len(values) > 1:
            self.steps += float(np.square(np.diff(values, axis=0)).mean(axis=(1, 2)).sum())
            self.pairs += len(values) - 1
        height, width = self.shape
        if height > 1:
            self.axes[0].see(values.transpose(0, 2, 1).reshape(-1, height))
        if width > 1:
            self.axes[1].see(values.reshape(-1, width))

    @property
    def mean(self) -> np.ndarray:
        """Return the mean field (height, width)."""
        return self.first + self.sum / self.count

    @property
    def variance(self) -> np.ndarray:
        """Return the variance at each node, (height, width)."""
        return np.maximum(self.squares / self.count - (self.sum / self.count) ** 2, 0.0)

    @property
    def size(self) -> float:
        """Return the mean square of the deviations from the mean over samples and nodes."""
        return float(self.variance.mean() + self.mean.var())

    def roughness(self, axis: int) -> float:
        """Return how much neighbours along an axis differ: 0 if not at all, 1 if independent."""
        lines = self.count * self.nodes / self.shape[axis]
        return self.axes[axis].neighbours / lines / (2 * self.size) if self.size else 0.0

    @property
    def restlessness(self) -> float:
        """Return how much consecutive samples differ: 0 if not at all, 1 if independent."""
        spread = float(self.variance.mean())
        return self.steps / self.pairs / (2 * spread) if self.pairs and spread else 1.0

    def quantiles(self, *shares: float) -> np.ndarray:
        """Return quantiles of the values, estimated from some of them."""
        return np.quantile(np.concatenate(self.values), shares)
