"""How the time of methods grows with the grid: power laws of a study, and where they cross."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from twoscale_lab.report.related import Curve, curves
from twoscale_lab.report.results import StudyResult
from twoscale_lab.study.statistics import PowerLaw, fit_power_law

QUANTITY = "total"
"""The time that is fitted by default."""


@dataclass(frozen=True)
class Scaling:
    """A method's mean times by nodes per side D, and the law through them."""

    curve: Curve
    law: PowerLaw

    @property
    def problem(self) -> str:
        return self.curve.cases[0].problem

    @property
    def measured(self) -> dict[float, float]:
        """Return the times by the nodes per side."""
        return dict(self.law.points)


def scalings(study: StudyResult, *, quantity: str = QUANTITY) -> list[Scaling]:
    """Return the power law of each method that was measured on several grids.

    Shared times are left out.
    """
    alone = study.where(
        lambda case: bool(case.mean(quantity)) and not case.is_shared_time(quantity)
    )
    found = [curve for curve in curves(alone, "resolution") if len(curve.at) > 1]
    return [Scaling(curve, _law(curve, quantity)) for curve in found]


def _law(curve: Curve, quantity: str) -> PowerLaw:
    times = [(case.resolution, case.mean(quantity)) for case in curve.cases]
    return fit_power_law((size, seconds) for size, seconds in times if seconds is not None)


@dataclass(frozen=True)
class Crossing:
    """Two methods of a problem, and the D at which their power laws cross; None if they never do.

    Beyond D, `lower` takes less time.
    """

    lower: Scaling
    higher: Scaling
    at: float | None

    @property
    def is_extrapolated(self) -> bool:
        """Say whether D lies outside the grids on which both were measured."""
        sides = [scaling.measured for scaling in (self.lower, self.higher)]
        return self.at is None or not max(map(min, sides)) <= self.at <= min(map(max, sides))


def crossings(found: Iterable[Scaling]) -> list[Crossing]:
    """Return where the laws of each two methods of a problem cross."""
    by_growth = sorted(found, key=lambda scaling: scaling.law.exponent)
    return [
        Crossing(lower, higher, lower.law.meets(higher.law))
        for lower, higher in combinations(by_growth, 2)
        if lower.problem == higher.problem
    ]
