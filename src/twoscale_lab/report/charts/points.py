"""Charts of one quantity against another: quality against cost, trade-offs, frontiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from twoscale.report.axes import GREY, label_points, log_axis, panels, pareto_front, shared_legend
from twoscale.report.display import display
from twoscale_lab.report.charts.cases import (
    PALE,
    CaseValues,
    Chart,
    Style,
    draw_rows,
    measured,
    require_any,
    styles,
)
from twoscale_lab.report.charts.kinds import chart_kind
from twoscale_lab.report.related import along_variances, curves
from twoscale_lab.report.results import CaseResult, StudyResult, place_title

_NAMED = 10  # points beside which there is room for their names


@chart_kind("Error against time")
def quality_cost(
    study: StudyResult, *, x: str = "total", y: str = "mre", joined: bool = False
) -> Chart:
    """Relative error against total time. Both axes are logarithmic. Lower left is better. The
    dashed line joins the best trade-offs: no other case is better in both. Error bars show one
    standard deviation over seeds.
    """
    return pareto(study, x=x, y=y, joined=joined)


@chart_kind("Trade-off")
def pareto(study: StudyResult, *, x: str = "total", y: str = "mre", joined: bool = False) -> Chart:
    """Each point is a case. Lower left is better. The dashed line joins the best trade-offs: no
    other case is better in both. Error bars show one standard deviation over seeds.

    Many cases have numbers, with their names beside. With `joined`, all resolutions share a panel,
    finer grids have larger points, and a line joins those of a method.
    """
    table = measured(study.cases, (x, y))
    places = study.places if not joined else {"": list(study.cases)}
    points = {case.id: (table.value(case, x), table.value(case, y)) for case in study.cases}
    drawn = {
        place: [case for case in cases if not np.isnan(points[case.id]).any()]
        for place, cases in places.items()
    }
    many = not joined and max(map(len, drawn.values()), default=0) > _NAMED
    figure, axes = panels(
        len(places),
        width=5.4 if len(places) == 1 else 4.6,
        height=4.4 if many else 3.6,
        columns=1 if many else 2,
        labels=[case.label for case in study.cases] if many else (),
    )
    for axis, (place, cases) in zip(axes, places.items(), strict=True):
        style = styles(cases)
        if joined:
            _join(axis, study, x, y, points)
        else:
            best = pareto_front([points[case.id] for case in drawn[place]])
            if len(best) > 1:
                axis.plot(*zip(*best, strict=True), color=PALE, ls="--", linewidth=1, zorder=1)
            axis.set_title(place_title(place))
        for case in drawn[place]:
            size = 1.5 * float(np.log2(case.resolution)) - 3 if joined else 8
            _point(axis, table, case, style[case.id], x, y, size=size)
        log_axis(axis, "x", [points[case.id][0] for case in cases])
        log_axis(axis, "y", [points[case.id][1] for case in cases])
        axis.set(xlabel=display(x).axis, ylabel=display(y).axis)
        axis.margins(0.12)
    if joined:
        shared_legend(figure, axes)
        return Chart(figure, table)
    for axis, (place, cases) in zip(axes, drawn.items(), strict=True):
        names = [case.label for case in cases]
        if many:
            names = _numbered(axis, cases, styles(places[place]))
        label_points(axis, dict(zip(names, (points[case.id] for case in cases), strict=True)))
    return Chart(figure, table)


def _numbered(axis: Axes, cases: Sequence[CaseResult], style: Mapping[str, Style]) -> list[str]:
    """List the cases right of an axis, numbered, and return their numbers."""
    numbers = [str(number) for number in range(1, len(cases) + 1)]
    handles = [Line2D([], [], **style[case.id].dots) for case in cases]
    entries = [f"{number}  {case.label}" for number, case in zip(numbers, cases, strict=True)]
    axis.legend(handles, entries, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)
    return numbers


def _point(
    axis: Axes, table: CaseValues, case: CaseResult, style: Style, x: str, y: str, *, size: float
) -> None:
    across, up = table.row(case, x), table.row(case, y)
    axis.errorbar(
        across.value,
        up.value,
        xerr=across.below,
        yerr=up.below,
        markersize=1.4 * size if style.marker == "*" else size,
        markeredgecolor="white",
        markeredgewidth=0.7,
        **style.dots,
    )


def _join(
    axis: Axes, study: StudyResult, x: str, y: str, points: Mapping[str, tuple[float, float]]
) -> None:
    """Draw lines through the resolutions of each method, and name the methods."""
    found = curves(study, "resolution")
    style = styles([curve.cases[0] for curve in found])
    for curve in found:
        own = style[curve.cases[0].id]
        for number, part in enumerate(curve.comparable_parts(x, y)):
            label = None if number else curve.label
            across, up = zip(*(points[case.id] for case in curve.cases[part]), strict=True)
            axis.plot(across, up, linewidth=1, zorder=1, label=label, **own.points)


@chart_kind("Error against size and cost")
def frontier(
    study: StudyResult,
    *,
    against: Sequence[str] = ("output_code", "pca_fit", "model_megabytes"),
    y: str = "mre",
    oracle: str = "oracle_mre",
) -> Chart:
    """Filled markers and solid lines show the learned error. Hollow markers and dashed lines show
    the error of the representation alone.

    A panel per cost and problem; a line joins the settings of a method.
    """
    table = measured(study.cases, (y, oracle, *against))
    usable = [x for x in against if any(case.mean(x) for case in study.cases)]
    require_any(usable, f"case with {' or '.join(against)}")
    parts = [(place, x) for place in study.places for x in usable]
    figure, axes = panels(len(parts), columns=len(usable), width=3.6, height=3.0)
    for axis, (place, x) in zip(axes, parts, strict=True):
        cases = study.places[place]
        lines = along_variances(cases)
        style = styles([line[0] for line in lines.values()])
        for label, line in lines.items():
            _frontier_line(axis, table, line, x, y, style[line[0].id], label)
            _frontier_line(axis, table, line, x, oracle, style[line[0].id])
        log_axis(axis, "x", [table.value(case, x) for case in cases])
        log_axis(axis, "y", [table.value(case, k) for case in cases for k in (y, oracle)])
        axis.set(xlabel=display(x).axis, ylabel=display(y).axis, title=place_title(place))
    axes[0].plot([], [], color=GREY, linestyle="-", marker="o", label="learned")
    axes[0].plot([], [], color=GREY, linestyle="--", marker="o", mfc="white", label="oracle")
    shared_legend(figure, axes)
    return Chart(figure, table)


def _frontier_line(
    axis: Axes,
    table: CaseValues,
    cases: Sequence[CaseResult],
    x: str,
    y: str,
    style: Style,
    label: str | None = None,
) -> None:
    """Draw a line of cases in the order of their variances; without a label dashed and hollow."""
    rows = [(table.value(case, x), table.row(case, y)) for case in cases]
    known = [(across, row) for across, row in rows if not np.isnan([across, row.value]).any()]
    if known:
        look = {"mfc": style.colour, "linestyle": "-", "linewidth": 1.4}
        if label is None:
            look = {"mfc": "white", "linestyle": "--", "linewidth": 1.0}
        look |= {"color": style.colour, "marker": style.marker, "label": label}
        at, drawn = zip(*known, strict=True)
        draw_rows(axis, at, drawn, bars=label is not None, **look)
