"""One picture of all methods: error against time, on the problems that most of them solved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log

from matplotlib.axes import Axes

from twoscale.methods.recipes import METHODS
from twoscale.methods.roles import PROPOSED
from twoscale.report.axes import (
    GREY,
    chart_style,
    label_points,
    lighten,
    log_axis,
    panels,
    pareto_front,
    shade,
    shared_legend,
)
from twoscale.report.display import display
from twoscale.report.method_looks import colour, marker
from twoscale_lab.report.charts.cases import PALE, Chart, measured, require_any
from twoscale_lab.report.results import CaseResult, StudyResult, cases_by_place, place_title

_PLACES = 2  # grids of each problem that are shown: those with most methods
_FEW = 3  # methods: a place with fewer is not shown
_PREDICTORS = {"affine": "v", "kernel": "d", "encoder": "*", "affine-mlp": "p"}
_OTHER = "h"
_LARGE = {"*": 13.0}  # markers that look smaller than others
_SIZE = 8.0
_APART = 1.3  # ratio of errors from which on a point gets a name of its own
_ACROSS, _UP = "total", "mre"


def error_time_chart(
    results: Iterable[StudyResult], *, places: Sequence[str] | None = None, columns: int = 2
) -> Chart:
    """Draw error against time of all methods, a panel per place, both axes logarithmic.

    Parameters
    ----------
    results
        The studies whose cases are drawn, such as `read_studies(folder).results`.
    places
        Problems and grids such as `darcy-256`; by default those with most methods.
    columns
        Panels in a row: 2 for a page, 1 for a phone.
    """
    known = error_time_cases(results)
    found = {place: known.get(place, []) for place in places} if places else main_places(known)
    found = {place: cases for place, cases in found.items() if cases}
    require_any(found, "problem that three methods solved")
    table = measured([case for cases in found.values() for case in cases], (_ACROSS, _UP))
    with chart_style():
        narrow = columns == 1
        figure, axes = panels(len(found), columns=columns, width=4.4 if narrow else 3.6, height=2.9)
        _draw(axes, found)
        shared_legend(figure, axes)
        for axis, cases in zip(axes, found.values(), strict=True):
            label_points(axis, _named(cases), others=map(_point, cases))
    return Chart(figure, table)


def error_time_cases(results: Iterable[StudyResult]) -> dict[str, list[CaseResult]]:
    """Return the cases by place: methods with default settings, and those with other predictors.

    They were trained on all fields. Of a case in several studies, the one with most seeds counts.
    """
    found = cases_by_place(
        results, lambda case: bool(case.predictor or not case.design) and _is_positive(case)
    )
    return {place: sorted(cases, key=_order) for place, cases in found.items()}


def best_cases(cases: Iterable[CaseResult]) -> list[CaseResult]:
    """Return the cases that no other beats in error and time, fastest first.

    Shared times are left out: they cannot be compared.
    """
    alone = [case for case in cases if not case.is_shared_time(_ACROSS)]
    front = pareto_front([_point(case) for case in alone])
    return sorted((case for case in alone if _point(case) in front), key=_point)


def main_places(found: Mapping[str, list[CaseResult]]) -> dict[str, list[CaseResult]]:
    """Return the places with most families of cases, at most two of each problem."""
    many = {place: len({_family(case) for case in cases}) for place, cases in found.items()}
    chosen: list[str] = []
    for problem in dict.fromkeys(cases[0].problem for cases in found.values()):
        own = [
            place
            for place, cases in found.items()
            if cases[0].problem == problem and many[place] >= _FEW
        ]
        best = sorted(own, key=lambda place: (-many[place], -found[place][0].resolution))[:_PLACES]
        chosen += sorted(best, key=lambda place: found[place][0].resolution)
    return {place: found[place] for place in chosen}


def _draw(axes: Sequence[Axes], found: Mapping[str, list[CaseResult]]) -> None:
    for axis, (place, cases) in zip(axes, found.items(), strict=True):
        front = [_point(case) for case in best_cases(cases)]
        axis.plot(*zip(*front, strict=True), "--", color=PALE, linewidth=1.2, zorder=1)
        for case in cases:
            _draw_case(axis, case)
        points = [_point(case) for case in cases]
        for which, values in zip("xy", zip(*points, strict=True), strict=True):
            log_axis(axis, which, values, most=5)
        axis.margins(0.14)
        axis.set(title=place_title(place), xlabel=display(_ACROSS).axis, ylabel=display(_UP).axis)
    axes[-1].plot([], [], "--", color=PALE, label="best trade-offs")
    if any(case.is_shared_time(_ACROSS) for cases in found.values() for case in cases):
        axes[-1].plot([], [], "o", color=GREY, mfc="white", label="† shared time")


def _draw_case(axis: Axes, case: CaseResult) -> None:
    look = colour(case.method)
    if case.objective:
        look = shade(look, 0.62)
    if case.predictor:
        look = lighten(shade(look, 0.8), 0.1)
    mark = marker(case.method)
    if case.predictor:
        mark = _PREDICTORS.get(case.predictor, _OTHER)
    axis.plot(
        *_point(case),
        marker=mark,
        linestyle="none",
        color=look,
        markersize=_LARGE.get(mark, _SIZE),
        mfc="white" if case.is_shared_time(_ACROSS) else look,
        mec=look if case.is_shared_time(_ACROSS) else "white",
        mew=0.7,
        label=_family(case),
        zorder=1.5 if case.is_shared_time(_ACROSS) else 2 + bool(case.predictor),
    )


def _named(cases: Sequence[CaseResult]) -> dict[str, tuple[float, float]]:
    """Return the points that have their names beside them.

    These are the best case with default settings, the paper's method, and each family on the
    front whose error differs clearly from those of the points that have a name already.
    """
    usual = [case for case in cases if not case.predictor and not case.objective]
    proposed = [case for case in usual if case.method == PROPOSED]
    front = best_cases(cases)[::-1]
    named: dict[str, tuple[float, float]] = {}
    for case in [*front[:1], *sorted(usual, key=_error)[:1], *proposed, *front]:
        errors = [error for _, error in named.values()]
        if case not in front or all(abs(log(_error(case) / one)) > log(_APART) for one in errors):
            named.setdefault(_family(case), _point(case))
    return named


def _error(case: CaseResult) -> float:
    return _point(case)[1]


def _family(case: CaseResult) -> str:
    """Return the name in the legend; all objectives of fine-tuning share one."""
    return (
        case.family.replace(f" + {case.objective}", ", fine-tuned")
        if case.objective
        else case.family
    )


def _order(case: CaseResult) -> tuple[bool, int, bool, str]:
    names = list(METHODS)
    place = names.index(case.method) if case.method in names else len(names)
    return bool(case.predictor), place, bool(case.objective), case.id


def _is_positive(case: CaseResult) -> bool:
    return all((case.mean(name) or 0.0) > 0 for name in (_ACROSS, _UP))


def _point(case: CaseResult) -> tuple[float, float]:
    across, up = (display(name).scale * (case.mean(name) or 0.0) for name in (_ACROSS, _UP))
    return across, up
