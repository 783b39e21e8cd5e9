"""Single channels of a dataset: numbers collected chunk by chunk in one pass, and findings on them.

Findings say whether values are finite, constant, or positive over many magnitudes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from twoscale.data.check.finding import Finding, some
from twoscale.runtime.precision import precision_problem

_KEPT_VALUES = 2**15  # of each channel, for quantiles
_SCALES_APART = 1e3  # ratio of two channels' largest values that is worth a word
_RANGE = 100  # ratio of largest and smallest value from which on a logarithm may help
_BULK = 10  # the same of the quantiles 5 % and 95 %
_SKEWED = 1.0  # skewness of values that a logarithm should at least halve
_TINY = 1e-6  # of the largest deviation: a node that deviates less is constant


@dataclass
class AxisDifferences:
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
    axes: tuple[AxisDifferences, AxisDifferences] = field(
        default_factory=lambda: (AxisDifferences(), AxisDifferences())
    )
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
            self.constant += [start + int(i) for i in np.flatnonzero(finite & (low == high))]
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
            self.sum, self.squares = np.zeros_like(self.first), np.zeros_like(self.first)
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

    @property
    def never_changes(self) -> np.ndarray:
        """Return for each node (height, width) whether it is the same in all samples."""
        deviation = np.sqrt(self.variance)
        return deviation <= _TINY * deviation.max()

    def lines(self, axis: int) -> float:
        """Return how many lines of nodes along an axis were seen."""
        return self.count * self.nodes / self.shape[axis]

    def roughness(self, axis: int) -> float:
        """Return how much neighbours along an axis differ: 0 if not at all, 1 if independent."""
        neighbours = self.axes[axis].neighbours / self.lines(axis)
        return neighbours / (2 * self.size) if self.size else 0.0

    @property
    def restlessness(self) -> float:
        """Return how much consecutive samples differ: 0 if not at all, 1 if independent."""
        spread = float(self.variance.mean())
        return self.steps / self.pairs / (2 * spread) if self.pairs and spread else 1.0

    def findings(self) -> Iterator[Finding]:
        """Yield the findings on this channel alone."""
        yield self._finite()
        if self.constant and self.low != self.high:
            seen = f"{self.label}: constant fields in {some(self.constant, 'sample')}"
            advice = "find out whether these samples failed; leave them out if they did"
            yield Finding("warning", "constant_fields", seen, advice)
        if self.count > 1:
            yield from self._precision()
            yield from self._constant_nodes()
        if self.side != "output" and self.count and self.low > 0:
            yield from self._logarithm()

    def _finite(self) -> Finding:
        if self.bad:
            seen = f"{self.label}: NaN or infinite values in {some(self.bad, 'sample')}"
            return Finding(
                "error", "values", seen, "leave these samples out, or compute them again"
            )
        low, high = self.low, self.high
        seen = f"{self.label}: all values finite, from {low:.4g} to {high:.4g}"
        return Finding("ok", "values", seen)

    def _precision(self) -> Iterator[Finding]:
        """Yield a warning if the variation between samples is nearly lost in their mean."""
        largest = float(np.abs(self.mean).max())
        problem = precision_problem(largest, math.sqrt(float(self.variance.mean())))
        if problem is not None:
            what = "fields" if self.nodes > 1 else "values"
            lost, advice = problem
            yield Finding("warning", "precision", f"{self.label}: the {what} {lost}", advice)

    def _constant_nodes(self) -> Iterator[Finding]:
        """Yield a note on nodes inside that are the same in all samples while others are not."""
        never = self.never_changes
        inside = never[1:-1, 1:-1]
        if not never.all() and inside.any():
            share = f"{int(inside.sum())} nodes inside ({100 * inside.mean():.2g} %)"
            seen = f"{self.label}: {share} are the same in all samples"
            advice = "fine for a mask or an obstacle; otherwise look for a mistake in the data"
            yield Finding("note", "constant_nodes", seen, advice)

    def _logarithm(self) -> Iterator[Finding]:
        """Yield a finding on a positive input over several magnitudes that a logarithm would tame.

        Values of only two levels, as in two materials, gain nothing from a logarithm.
        """
        ratio = self.high / self.low
        values = np.concatenate(self.values)  # some of them
        least, most = np.quantile(values, (0.05, 0.95))
        skewed, tamed = skewness(values), skewness(np.log(values))
        skews = skewed >= _SKEWED and abs(tamed) <= 0.5 * skewed
        if ratio >= _RANGE and most >= _BULK * least and skews:
            orders = f"{math.log10(ratio):.1f} orders of magnitude"
            span = f"from {self.low:.2g} to {self.high:.2g}"
            seen = f"{self.label}: positive values over {orders}, {span}"
            advice = "fit with input_transform=log: the method then sees its logarithm"
            yield Finding("warning", "logarithm", seen, advice)


def skewness(values: np.ndarray) -> float:
    """Return the third standardised moment; 0 if all values are the same."""
    apart = values - values.mean()
    spread = float(np.sqrt(np.square(apart).mean()))
    return float((apart**3).mean()) / spread**3 if spread else 0.0


def scale_findings(channels: Sequence[Channel]) -> Iterator[Finding]:
    """Yield a note on channels of one side whose sizes are far apart."""
    sizes = np.array([max(abs(one.low), abs(one.high)) for one in channels])
    sound = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
    if not len(sound):
        return
    least, most = sound[sizes[sound].argmin()], sound[sizes[sound].argmax()]
    if sizes[most] > _SCALES_APART * sizes[least]:
        low, high = (f"up to {sizes[one]:.0e}" for one in (least, most))
        seen = f"{channels[least].label} has values {low}, {channels[most].label} {high}"
        yield Finding("note", "scales", seen, "nothing to do, each channel is scaled on its own")


def boundary_findings(outputs: Sequence[Channel], periodic: tuple[bool, bool]) -> Iterator[Finding]:
    """Yield what the outputs are at the boundary: zero, fixed or free."""
    for channel in outputs:
        edge = np.zeros(channel.shape, dtype=bool)
        if not periodic[0] and channel.shape[0] > 2:
            edge[[0, -1]] = True
        if not periodic[1] and channel.shape[1] > 2:
            edge[:, [0, -1]] = True
        if channel.count < 2 or not edge.any() or not channel.size:
            continue
        fixed = bool(channel.never_changes[edge].all())
        zero = float(np.abs(channel.mean[edge]).max()) <= _TINY * math.sqrt(channel.size)
        kind = "zero" if fixed and zero else "the same in all samples" if fixed else "free"
        level = "ok" if kind == "free" else "note"
        advice = "" if kind == "free" else "nothing to do, PCA codes keep them exactly"
        seen = f"{channel.label}: values at the boundary are {kind}"
        yield Finding(level, "boundary", seen, advice)
