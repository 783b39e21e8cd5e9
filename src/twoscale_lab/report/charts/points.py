"""Charts of one quantity against another: quality against cost, trade-offs, frontiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from twoscale.report.axes import GREY, label_points, log_axis, panels, pareto_front, shared_legend
from twoscale.report.display import display
from twoscale_lab.report.charts.style import Style, in_display_units, require_any, styles
from twoscale_lab.report.related import along_variances, curves
from twoscale_lab.report.results import CaseResult, StudyResult, place_title

_NAMED = 10  # points beside which there is room for their names


def trade_off(
    study: StudyResult, *, x: str = "total", y: str = "mre", joined: bool = False
) -> Figure:
    """Draw a quantity against another, a point per case with one standard deviation each way.

    A dashed line joins the cases that no other case beats in both; many cases have numbers, with
    their names beside. With `joined`, all resolutions share a panel, finer grids have larger
    points, and a line joins those of a method.
    """
    places = study.places if not joined else {"": list(study.cases)}
    points = {case.id: _place(case, x, y) for case in study.cases}
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
            _join(axis, study, x, y)
        else:
            _front(axis, cases, x, y)
            axis.set_title(place_title(place))
        for case in cases:
            _point(axis, case, style[case.id], x, y, size=_size(case) if joined else 8)
        for which, name in (("x", x), ("y", y)):
            log_axis(axis, which, [in_display_units(case.spread(name), name)[0] for case in cases])
        axis.set(xlabel=display(x).axis, ylabel=display(y).axis)
        axis.margins(0.12)
    if joined:
        shared_legend(figure, axes)
        return figure
    for axis, (place, cases) in zip(axes, drawn.items(), strict=True):
        names = [case.label for case in cases]
        if many:
            names = _numbered(axis, cases, styles(places[place]))
        label_points(axis, dict(zip(names, (points[case.id] for case in cases), strict=True)))
    return figure


def _numbered(axis: Axes, cases: Sequence[CaseResult], style: Mapping[str, Style]) -> list[str]:
    """List the cases right of an axis, numbered, and return their numbers."""
    numbers = [str(number) for number in range(1, len(cases) + 1)]
    handles = [Line2D([], [], **style[case.id].dots) for case in cases]
    entries = [f"{number}  {case.label}" for number, case in zip(numbers, cases, strict=True)]
    axis.legend(handles, entries, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)
    return numbers


def _place(case: CaseResult, x: str, y: str) -> tuple[float, float]:
    return (in_display_units(case.spread(x), x)[0], in_display_units(case.spread(y), y)[0])


def _size(case: CaseResult) -> float:
    return 1.5 * float(np.log2(case.resolution)) - 3


def _point(axis: Axes, case: CaseResult, style: Style, x: str, y: str, *, size: float) -> None:
    across, across_spread = in_display_units(case.spread(x), x)
    up, up_spread = in_display_units(case.spread(y), y)
    if np.isnan([across, up]).any():
        return
    axis.errorbar(
        across,
        up,
        xerr=min(across_spread, 0.95 * across),  # stays on a logarithmic axis
        yerr=min(up_spread, 0.95 * up),
        markersize=1.4 * size if style.marker == "*" else size,
        markeredgecolor="white",
        markeredgewidth=0.7,
        **style.dots,
    )


def _front(axis: Axes, cases: Sequence[CaseResult], x: str, y: str) -> None:
    """Draw the line of cases that none beats in both quantities."""
    points = [_place(case, x, y) for case in cases]
    best = pareto_front([point for point in points if not np.isnan(point).any()])
    if len(best) > 1:
        axis.plot(*zip(*best, strict=True), color="#9aa3ad", linestyle="--", linewidth=1, zorder=1)


def _join(axis: Axes, study: StudyResult, x: str, y: str) -> None:
    """Draw lines through the resolutions of each method, and name the methods."""
    found = curves(study, "resolution")
    style = styles([curve.cases[0] for curve in found])
    for curve in found:
        own = style[curve.cases[0].id]
        points = [_place(case, x, y) for case in curve.cases]
        for number, part in enumerate(curve.comparable_parts(x, y)):
            label = None if number else curve.label
            across, up = zip(*points[part], strict=True)
            axis.plot(across, up, linewidth=1, zorder=1, label=label, **own.points)


def frontier(
    study: StudyResult,
    *,
    against: Sequence[str] = ("output_code", "pca_fit", "model_megabytes"),
    y: str = "mre",
    oracle: str = "oracle_mre",
) -> Figure:
    """Draw learned (solid) and oracle error (dashed, hollow) against sizes and costs.

    A panel per cost and problem; a line joins the settings of a method.
    """
    usable = [x for x in against if any(case.mean(x) for case in study.cases)]
    require_any(usable, f"case with {' or '.join(against)}")
    parts = [(place, x) for place in study.places for x in usable]
    figure, axes = panels(len(parts), columns=len(usable), width=3.6, height=3.0)
    for axis, (place, x) in zip(axes, parts, strict=True):
        cases = study.places[place]
        lines = along_variances(cases)
        style = styles([line[0] for line in lines.values()])
        for label, line in lines.items():
            _frontier_lines(axis, line, style[line[0].id], label, x, {y: "-", oracle: "--"})
        log_axis(axis, "x", [in_display_units(case.spread(x), x)[0] for case in cases])
        log_axis(
            axis,
            "y",
            [in_display_units(case.spread(k), k)[0] for case in cases for k in (y, oracle)],
        )
        axis.set(xlabel=display(x).axis, ylabel=display(y).axis, title=place_title(place))
    axes[0].plot([], [], color=GREY, linestyle="-", marker="o", label="learned")
    axes[0].plot([], [], color=GREY, linestyle="--", marker="o", mfc="white", label="oracle")
    shared_legend(figure, axes)
    return figure


def _frontier_lines(
    axis: Axes,
    cases: Sequence[CaseResult],
    style: Style,
    label: str,
    x: str,
    lines: dict[str, str],
) -> None:
    for name, line in lines.items():
        points = [
            (in_display_units(case.spread(x), x)[0], *in_display_units(case.spread(name), name))
            for case in cases  # in the order of the variance, also where times do not follow it
            if case.mean(x) is not None and case.mean(name) is not None
        ]
        if points:
            across, up, spread = zip(*points, strict=True)
            solid = line == "-"
            axis.errorbar(
                across,
                up,
                yerr=np.minimum(spread, 0.95 * np.array(up)) if solid else None,
                color=style.colour,
                marker=style.marker,
                linestyle=line,
                linewidth=1.4 if solid else 1.0,
                mfc=style.colour if solid else "white",
                label=label if solid else None,
            )
