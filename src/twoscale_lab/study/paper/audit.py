"""The equivalence audit: is a change between two cases within a margin declared beforehand?

Margins are data, `{metric: {kind: size}}`, which a study's definition carries:

    margins:
      mre: {relative: 0.05}       # mean of (v−b)/b within ±5 %
      ssim: {absolute: 0.001}     # mean of v−b within ±0.001
      pca_fit: {speed_up: 1.2}    # mean of b/v above 1.2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from twoscale.errors import TwoscaleError
from twoscale_lab.study.statistics import (
    Change,
    Interval,
    Values,
    changes_by_seed,
    mean_interval,
    relative_change,
    speed_up,
)

Kind = Literal["relative", "absolute", "speed_up"]
Decision = Literal["equivalent", "different", "pass", "fail", "inconclusive"]

CHANGES: dict[Kind, Change] = {
    "relative": relative_change,
    "absolute": lambda value, base: value - base,
    "speed_up": speed_up,
}

MARGINS: dict[str, dict[Kind, float]] = {
    "mre": {"relative": 0.05},
    "oracle_mre": {"relative": 0.02},
    "ssim": {"absolute": 0.001},
    "mse": {"relative": 0.10},
    "spectral_error": {"relative": 0.10},
    "value_trace_error": {"relative": 0.10},
    "normal_derivative_trace_error": {"relative": 0.10},
    "residual_rms": {"relative": 0.10},
    "pca_fit": {"speed_up": 1.2},
}
"""The paper's, for its audit of PCA solvers."""


@dataclass(frozen=True)
class Margin:
    """How far a change may go (relative, absolute), or how large a speed-up must be."""

    kind: Kind
    size: float

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            known = ", ".join(get_args(Kind))
            raise TwoscaleError(f"no margin is called '{self.kind}': known are {known}")
        if not self.size > 0:
            raise TwoscaleError(f"a margin is positive, not {self.size}")


def read_margins(data: Mapping[str, Mapping[Kind, float]]) -> dict[str, Margin]:
    """Return the margins that are written as `{metric: {kind: size}}`.

    >>> read_margins({"mre": {"relative": 0.05}})
    {'mre': Margin(kind='relative', size=0.05)}
    """
    for metric, given in data.items():
        if len(given) != 1:
            raise TwoscaleError(
                f"the margin of {metric} is one kind and its size, as in {{relative: 0.05}}, "
                f"not {dict(given)}"
            )
    return {metric: Margin(*pair) for metric, given in data.items() for pair in given.items()}


@dataclass(frozen=True)
class Audit:
    """A mean change over common seeds, its interval, and what that says about the margin."""

    change: Interval
    margin: Margin
    decision: Decision
    seeds: int


def audit(values: Values, base: Values, margin: Margin) -> Audit | None:
    """Return whether `values` are as good as `base` by a margin; None where no change is defined.

    The change is taken within each common seed: (v−b)/b, v−b, or b/v for a speed-up; so there is
    none without a common seed or for a zero divisor. Its mean has Student's interval, at 90 % that
    of two one-sided tests of 5 % each. One seed has no interval and decides nothing.
    """
    changes = changes_by_seed(values, base, CHANGES[margin.kind])
    if changes is None:
        return None
    change = mean_interval(changes)
    return Audit(change, margin, decide(change, margin), len(changes))


def decide(change: Interval, margin: Margin) -> Decision:
    """Return what an interval says about a margin.

    Equivalent: within ±margin; different: beyond it altogether. Pass: a speed-up above the
    margin; fail: one below it altogether (the paper's table, which has no word for that, says
    inconclusive). Else inconclusive.

    >>> decide(Interval(0.01, -0.02, 0.04), Margin("relative", 0.05))
    'equivalent'
    """
    lower, upper, size = change.lower, change.upper, margin.size
    if lower is None or upper is None:
        return "inconclusive"
    if margin.kind == "speed_up":
        return "pass" if lower > size else "fail" if upper < size else "inconclusive"
    if -size < lower and upper < size:
        return "equivalent"
    return "different" if lower > size or upper < -size else "inconclusive"
