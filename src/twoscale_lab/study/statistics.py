"""Statistics over seeds, sizes and resolutions: spreads, paired changes, power laws, crossings.

A quantity of one case is a mapping from seed to value. Two cases are compared over the seeds they
share, seed by seed: a seed fixes the split of the data, so that its effect cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, stdev

import numpy as np
import scipy  # loads its stats only where they are used: that takes half a second

from twoscale.errors import TwoscaleError

Values = Mapping[int, float]  # seed -> value
Change = Callable[[float, float], float | None]  # of a value from a base value
Curve = Mapping[float, float]  # size (of the training set, of the grid) -> value

CONFIDENCE = 0.9
_LARGEST_LOG = 700.0  # whose exponential is still a number


@dataclass(frozen=True)
class Spread:
    """A quantity over seeds: mean, sample standard deviation (None for one seed), how many."""

    mean: float
    deviation: float | None
    seeds: int


def spread(values: Iterable[float]) -> Spread:
    """Return mean and sample standard deviation, √(Σ(v−v̄)²/(n−1)).

    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, deviation=1.0, seeds=3)
    """
    listed = [_finite(value) for value in values]
    if not listed:
        raise TwoscaleError("a spread needs the value of at least one seed; none came")
    return Spread(mean(listed), stdev(listed) if len(listed) > 1 else None, len(listed))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise TwoscaleError(
            f"{value} came among the values of seeds, which have to be finite: leave that seed out "
            "or run it again"
        )
    return value


def relative_change(value: float, base: float) -> float | None:
    """Return (v−b)/b; None for a zero base.

    >>> relative_change(3.0, 4.0)
    -0.25
    """
    return (value - base) / base if base else None


def speed_up(value: float, base: float) -> float | None:
    """Return how many times as fast as `base` a time is, b/v; None for a zero time.

    >>> speed_up(2.0, 5.0)
    2.5
    """
    return base / value if value else None


def changes_by_seed(values: Values, base: Values, change: Change) -> list[float] | None:
    """Return the change within each common seed; None without one, or where one is undefined."""
    found = [change(value, base_value) for value, base_value in _paired(values, base)]
    defined = [one for one in found if one is not None]
    return defined if found and len(defined) == len(found) else None


def change_of_means(values: Values, base: Values) -> Spread | None:
    """Return (v̄−b̄)/b̄ over common seeds; None without one, or for a zero base.

    The mean of (v−b)/b differs from it where v/b varies much. The paper's paired effects and its
    solver audit are such means; its effects along the loss ladder and over training sizes are
    changes of means.

    >>> change_of_means({0: 1.0, 1: 3.0}, {0: 2.0, 1: 6.0})
    Spread(mean=-0.5, deviation=None, seeds=2)
    """
    pairs = _paired(values, base)
    if not pairs or not all(b for _, b in pairs):
        return None
    change = relative_change(mean(v for v, _ in pairs), mean(b for _, b in pairs))
    return None if change is None else Spread(change, None, len(pairs))


def _paired(values: Values, base: Values) -> list[tuple[float, float]]:
    """Return (value, base value) for each seed that both have, in the seeds' order."""
    seeds = sorted(values.keys() & base.keys())
    return [(_finite(values[seed]), _finite(base[seed])) for seed in seeds]


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds around it; None where the data are too few to give any."""

    estimate: float
    lower: float | None
    upper: float | None


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return Student's interval of the mean, v̄ ± t·s/√n with n−1 degrees of freedom.

    >>> found = mean_interval([2.0, 4.0], confidence=0.5)  # t is 1 here
    >>> found.estimate, round(found.lower, 9), round(found.upper, 9)
    (3.0, 2.0, 4.0)
    """
    found = spread(values)
    if found.deviation is None:
        return Interval(found.mean, None, None)
    half = _quantile(confidence, found.seeds - 1) * found.deviation / math.sqrt(found.seeds)
    return Interval(found.mean, found.mean - half, found.mean + half)


def implied_deviation(interval: Interval, seeds: int) -> float:
    """Return the standard deviation over `seeds` that gives their mean this Student's interval.

    >>> round(implied_deviation(mean_interval([2.0, 4.0, 9.0]), 3), 9) == round(stdev([2, 4, 9]), 9)
    True
    """
    if interval.lower is None or interval.upper is None or seeds < 2:
        raise TwoscaleError("a deviation needs an interval with bounds, of two seeds or more")
    half = (interval.upper - interval.lower) / 2
    return half * math.sqrt(seeds) / _quantile(CONFIDENCE, seeds - 1)


def _quantile(confidence: float, freedom: int) -> float:
    """Return the t that bounds the central `confidence` of Student's distribution."""
    return float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))


@dataclass(frozen=True)
class PowerLaw:
    """y = coefficient · x^exponent, with the measured points that it was fitted to."""

    coefficient: float
    exponent: float
    exponent_error: float | None  # standard error; None for two points, which any law fits
    points: tuple[tuple[float, float], ...]  # (x, y) by growing x

    def meets(self, other: PowerLaw) -> float | None:
        """Return the size at which two laws are equal, (a₂/a₁)^(1/(b₁−b₂)).

        None for equal exponents, and where that size is too large or small for a number.

        >>> round(fit_power_law([(1, 1), (2, 4)]).meets(fit_power_law([(1, 8), (2, 16)])), 9)
        8.0
        """
        slopes = self.exponent - other.exponent
        logs = math.log(other.coefficient) - math.log(self.coefficient)
        if not slopes or abs(logs) > _LARGEST_LOG * abs(slopes):
            return None
        return math.exp(logs / slopes)

    def extrapolate(self, size: float) -> float:
        """Return what the law says of a larger size, from its largest measured one.

        That is the geometric mean of the values there times (size / largest)^exponent, as in the
        paper's projection; the fitted line may run beside the last measurement.
        """
        largest, _ = self.points[-1]
        logs = [math.log(value) for at, value in self.points if at == largest]
        return math.exp(mean(logs)) * (size / largest) ** self.exponent


def fit_power_law(points: Iterable[tuple[float, float]]) -> PowerLaw:
    """Return the law y = a·x^b that is closest to (x, y) points by least squares in logarithms.

    log y = log a + b·log x, with the standard error of b. Points may share an x, as the seeds of
    one size do.

    >>> law = fit_power_law([(1, 3), (2, 12), (4, 48)])
    >>> round(law.coefficient, 6), round(law.exponent, 6), round(law.extrapolate(8), 6)
    (3.0, 2.0, 192.0)
    """
    ordered = tuple(sorted((float(x), float(y)) for x, y in points))
    sizes = sorted({x for x, _ in ordered})
    if len(sizes) < 2:
        raise TwoscaleError(f"a power law needs points of two sizes or more, not of {sizes} only")
    logs, logs_of_values = np.array([(_log(x), _log(y)) for x, y in ordered]).T
    line = scipy.stats.linregress(logs, logs_of_values)
    return PowerLaw(
        coefficient=math.exp(line.intercept),
        exponent=float(line.slope),
        exponent_error=None if len(ordered) < 3 else float(line.stderr),
        points=ordered,
    )


def _log(value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise TwoscaleError(f"{value} came where logarithms are taken: give positive values")
    return math.log(value)


@dataclass(frozen=True)
class Crossover:
    """Where one curve passes another."""

    at: float
    below: bool  # whether the first curve is the lower one beyond


def crossovers(curve: Curve, other: Curve) -> list[Crossover]:
    """Return where `curve` passes `other`, by growing size; none with fewer than two common sizes.

    Between two measured sizes log(curve/other) is taken as linear in log(size); the crossing is
    its zero. Curves that touch and part again do not cross; those that are equal for a while
    cross where they meet. A level is a constant curve:

    >>> errors = {1000: 0.04, 4000: 0.01}
    >>> crossing, = crossovers(errors, dict.fromkeys(errors, 0.02))
    >>> round(crossing.at), crossing.below
    (2000, True)
    """
    sizes = sorted(curve.keys() & other.keys())
    gaps = [_log(curve[size]) - _log(other[size]) for size in sizes]
    apart = [index for index, gap in enumerate(gaps) if gap != 0]
    found = []
    for start, end in pairwise(apart):
        if gaps[start] * gaps[end] > 0:
            continue
        # The next size, not `end`: where ties lie between, they are where the curves meet.
        low, high = sizes[start], sizes[start + 1]
        part = gaps[start] / (gaps[start] - gaps[start + 1])
        at = math.exp((1 - part) * _log(low) + part * _log(high))
        found.append(Crossover(at, below=gaps[end] < 0))
    return found
