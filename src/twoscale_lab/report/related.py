"""Relate the cases of a study: those along a curve, a case and its base, growth with the grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import CHOICES
from twoscale.methods.settings import setting_text
from twoscale.report.display import display
from twoscale.report.page import PageTable, TableCell
from twoscale.report.picture import reporting_errors
from twoscale_lab.report.results import OWN, SCHEDULE, CaseResult, StudyResult, property_of
from twoscale_lab.study.definition import Study
from twoscale_lab.study.statistics import (
    PowerLaw,
    Spread,
    changes_by_seed,
    fit_power_law,
    relative_change,
    speed_up,
    spread,
)

COMMON = frozenset({"rows", "where", "caption"})
"""Options of every figure: which cases, by pattern or property, and a caption."""


def chosen_cases(
    study: StudyResult, options: Mapping[str, Any]
) -> tuple[StudyResult, dict[str, Any]]:
    """Return the cases that a figure's options choose, and the options of its kind alone."""
    own = {name: value for name, value in options.items() if name not in COMMON}
    return study.select(options.get("rows"), options.get("where")), own


@dataclass(frozen=True)
class Curve:
    """Cases that differ in one property only, sorted by it, and the values of that property."""

    cases: tuple[CaseResult, ...]
    at: tuple[Any, ...]

    @property
    def label(self) -> str:
        """Return the name of what the cases have in common."""
        return self.cases[0].title

    def comparable_parts(self, *names: str) -> list[slice]:
        """Return the parts of the curve in which all times are shared, or all are unshared."""
        shares = [tuple(case.is_shared_time(name) for name in names) for case in self.cases]
        starts = [k for k in range(len(shares)) if k == 0 or shares[k] != shares[k - 1]]
        return [slice(*ends) for ends in pairwise([*starts, len(shares)])]


def curves(study: StudyResult, axis: str) -> list[Curve]:
    """Return the cases joined along an axis: resolution, training or a setting.

    Cases belong together if they agree in all but the axis and the schedule of training. Single
    cases that belong to no curve are left out, unless there are no curves at all.
    """
    found: dict[str, list[CaseResult]] = {}
    for case in study.cases:
        if property_of(case, axis) is not None:
            found.setdefault(str(signature(case, without=(axis,))), []).append(case)
    joined = []
    for cases in found.values():
        cases.sort(key=lambda case: property_of(case, axis))
        joined.append(Curve(tuple(cases), tuple(property_of(case, axis) for case in cases)))
    longest = [curve for curve in joined if len(curve.cases) > 1]
    return longest or joined


def signature(case: CaseResult, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return all properties of a case, except the given ones and the training schedule."""
    settings = {f"settings.{name}": value for name, value in case.settings.items()}
    own = {name: property_of(case, name) for name in OWN}
    left_out = {*without, *(_setting(name) for name in (*without, *SCHEDULE) if name not in OWN)}
    return {name: value for name, value in (own | settings).items() if name not in left_out}


def base_of(study: StudyResult, case: CaseResult, changes: Mapping[str, Any]) -> CaseResult | None:
    """Return the case that differs in the given properties only, such as `objective: null`.

    Between different methods only problem, resolution, training and objective have to agree;
    between different predictors only the settings that both have.
    """
    changed = {name if name in OWN else _setting(name): value for name, value in changes.items()}
    wanted = signature(case) | changed
    if "method" in changes:
        wanted = {name: wanted[name] for name in (*OWN, *changed)}
    others_bring_their_own = any(_setting(name) in changed for name in CHOICES)
    for other in study.cases:
        theirs = signature(other)
        compared = wanted.keys() & (theirs.keys() | changed.keys())
        if all(
            str(theirs.get(name)) == str(wanted[name])
            for name in (compared if others_bring_their_own else wanted)
        ):
            return other
    return None


def with_base(
    study: StudyResult, changes: Mapping[str, Any]
) -> list[tuple[CaseResult, CaseResult]]:
    """Return each case that has a base, with that base."""
    found = [(case, base_of(study, case, changes)) for case in study.cases]
    return [(case, base) for case, base in found if base is not None and base is not case]


def change_from(
    base: CaseResult, case: CaseResult, name: str, *, ratio: bool = False
) -> Spread | None:
    """Return the change of a quantity from a base to a case, seed by seed.

    It is (case - base) / base, or base / case with `ratio`. None if no seed has both values, and
    for times of which only one is shared.
    """
    if case.is_shared_time(name) != base.is_shared_time(name):
        return None
    kind = speed_up if ratio else relative_change
    changes = changes_by_seed(case.values(name), base.values(name), kind)
    return None if changes is None else spread(changes)


def _setting(name: str) -> str:
    return name if name.startswith("settings.") else f"settings.{name}"


def along_variances(cases: Iterable[CaseResult]) -> dict[str, list[CaseResult]]:
    """Return the cases by family, within which only the retained variances differ."""
    found: dict[str, list[CaseResult]] = {}
    listed = list(cases)
    varied = {name for case in listed for name in case.design if not name.endswith("_variance")}
    for case in listed:
        of_method = [other for other in listed if other.method == case.method]
        differing = [
            f"{name.replace('_', ' ')} {setting_text(case.settings[name])}"
            for name in sorted(varied & case.settings.keys())
            if len({setting_text(other.settings.get(name)) for other in of_method}) > 1
        ]
        found.setdefault(", ".join([case.title, *differing]), []).append(case)
    return found


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


_CROSSING_NOTE = (
    "D is the number of nodes per side. A power law time = a·D^b is fitted to the mean times by "
    "least squares. The exponent b has its standard error, except where there are only two grids. "
    "Beyond the crossing, the method on the left takes less time. ‡: extrapolated, outside the "
    "grids on which both were measured. If two exponents differ by less than their errors, the "
    "crossing means nothing."
)
_EXTRAPOLATED = " ‡"
_LARGEST = 1e6  # a larger D is not printed


def crossing_tables(study: StudyResult, definition: Study | None) -> list[PageTable]:
    """Return the tables of a study's time projections: growth, and where two methods cross."""
    found = []
    for figure in definition.figures if definition else ():
        if figure.kind == "time-projection":
            with suppress(TwoscaleError), reporting_errors(figure.options):
                part, own = chosen_cases(study, figure.options)
                quantity = own.get("quantity", QUANTITY)
                title = f"How the {display(quantity).words} grows, and where two methods cross"
                if crossing := crossings(scalings(part, quantity=quantity)):
                    found.append(_crossing_table(crossing, title))
    return found


def _crossing_table(found: Sequence[Crossing], title: str) -> PageTable:
    several = len({crossing.lower.problem for crossing in found}) > 1
    header = ["grows less", "exponent", "grows more", "exponent", "cross at D"]
    rows: list[list[TableCell | str]] = [
        [
            _name(crossing.lower, several),
            _exponent(crossing.lower),
            _name(crossing.higher, several),
            _exponent(crossing.higher),
            TableCell(_at(crossing), crossing.at),
        ]
        for crossing in found
    ]
    return PageTable(header, rows, title, _CROSSING_NOTE, words=(0, 2))


def _name(scaling: Scaling, several: bool) -> str:
    return f"{scaling.problem.capitalize()}: " * several + scaling.curve.label


def _exponent(scaling: Scaling) -> TableCell:
    law = scaling.law
    error = ", two grids" if law.exponent_error is None else f" ± {law.exponent_error:.3f}"
    return TableCell(f"{law.exponent:.3f}{error}", law.exponent)


def _at(crossing: Crossing) -> str:
    if crossing.at is None:
        return "never"
    words = "below 1" if crossing.at < 1 else f"{crossing.at:,.0f}"
    if crossing.at > _LARGEST:
        words = f"above {_LARGEST:,.0f}"
    return words + _EXTRAPOLATED * crossing.is_extrapolated
