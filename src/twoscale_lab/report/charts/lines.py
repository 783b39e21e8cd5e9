"""Charts along an axis: quantities against resolution, training size or a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from twoscale.methods.settings import setting_text
from twoscale.report.axes import GREY, log_axis, panels, shared_legend, ticks
from twoscale.report.display import display
from twoscale_lab.report import related
from twoscale_lab.report.charts.cases import (
    CaseValue,
    CaseValues,
    Chart,
    Style,
    changes,
    draw_rows,
    measured,
    require_any,
    styles,
)
from twoscale_lab.report.charts.kinds import chart_kind
from twoscale_lab.report.related import QUANTITY, Curve, base_of, scalings
from twoscale_lab.report.results import StudyResult, place_title

_AXES = {"resolution": "nodes per side", "training": "training fields"}
_LOOKS = (
    ("#009E73", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#0072B2", "D", ":"),
    ("#CC79A7", "^", "-."),
)


@chart_kind("Curves")
def curves(
    study: StudyResult,
    *,
    x: str = "resolution",
    quantities: Sequence[str] = ("mre", "ssim"),
    oracle: bool = False,
) -> Chart:
    """One line per method. Error bars show one standard deviation over seeds.

    The line goes along resolution, training size or a setting. With `oracle`, the error of the
    representation alone is added to the learned one, dashed and hollow. Shared times are hollow,
    too, and no line joins them with unshared ones.
    """
    parts = _parts(study, x)
    panes = [
        (title, part, name)
        for title, part in parts.items()
        for name in quantities
        if any(case.mean(name) is not None for case in part.cases)
    ]
    require_any(panes, f"case with {' or '.join(quantities)}")
    table = measured(study.cases, [*quantities, *(["oracle_mre"] if oracle else [])])
    figure, axes = panels(len(panes), columns=min(len(quantities), 3))
    for axis, (title, part, name) in zip(axes, panes, strict=True):
        found = related.curves(part, x)
        _lines(axis, table, found, x, name)
        if oracle and name == "mre":
            _lines(axis, table, found, x, "oracle_mre", dashed=True)
        _axis(axis, found, x)
        axis.set(xlabel=_axis_title(x), ylabel=display(name).axis, title=title)
    if oracle:
        axes[0].plot([], [], color=GREY, linestyle="--", marker="o", mfc="white", label="oracle")
    if any(row.shared for row in table.rows):
        axes[0].plot([], [], "o", color=GREY, mfc="white", label="† shared time")
    shared_legend(figure, axes)
    return Chart(figure, table)


def _parts(study: StudyResult, x: str) -> dict[str, StudyResult]:
    """Return the parts of a study that are drawn in panels of their own, by their titles."""
    if x == "resolution":
        names = list(dict.fromkeys(case.problem for case in study.cases))
        return {name.capitalize(): study.select(properties={"problem": name}) for name in names}
    return {place_title(place): study.select([f"{place} *"]) for place in study.places}


def _lines(
    axis: Axes,
    table: CaseValues,
    found: Sequence[Curve],
    x: str,
    name: str,
    dashed: bool = False,
) -> None:
    drawn: list[float] = []
    style = styles([curve.cases[0] for curve in found])
    for curve in found:
        own = style[curve.cases[0].id]
        rows = [table.row(case, name) for case in curve.cases]
        for row in rows:
            drawn += [row.value] if dashed else [row.value - row.below, sum(row.point)]
        at = _positions(found, curve, x)
        shares = [(where, row.value) for where, row in zip(at, rows, strict=True) if row.shared]
        across, up = zip(*shares, strict=True) if shares else ((), ())
        axis.plot(across, up, mfc="white", zorder=3, **own.dots)
        look = own.points | ({"linestyle": "--"} if dashed else {})
        for number, part in enumerate(curve.comparable_parts(name)):
            label = None if dashed or number else curve.label
            look |= {"mfc": "white", "linewidth": 1.0} if dashed else {"linewidth": 1.5}
            draw_rows(axis, at[part], rows[part], bars=not dashed, label=label, **look)
    if not display(name).higher_is_better:
        log_axis(axis, "y", drawn)


def _positions(found: Sequence[Curve], curve: Curve, x: str) -> list[float]:
    """Return where a curve's points stand: numbers as they are, settings side by side."""
    if x in _AXES:
        return [float(value) for value in curve.at]
    values = sorted({value for other in found for value in other.at})
    return [float(values.index(value)) for value in curve.at]


def _axis(axis: Axes, found: Sequence[Curve], x: str) -> None:
    values = sorted({value for curve in found for value in curve.at})
    if x in _AXES:
        axis.set_xscale("log")
        ticks(axis, values, [f"{value:,}" for value in values])
    else:
        ticks(axis, range(len(values)), [setting_text(value) for value in values])
        axis.set_xlim(-0.3, len(values) - 0.7)


def _axis_title(x: str) -> str:
    return _AXES.get(x, x.split(".")[-1].replace("_", " "))


@chart_kind("What is represented and what is learned")
def trainability(study: StudyResult, *, x: Sequence[str]) -> Chart:
    """Filled markers show the learned error, hollow markers the oracle error. The shaded gap is the
    error that training leaves. A ring marks the lowest learned error. Error bars show one standard
    deviation over seeds.

    A panel per setting and problem.
    """
    coded = study.where(lambda case: case.mean("oracle_mre") is not None)
    table = measured(coded.cases, ("oracle_mre", "mre", "learned_to_oracle"))
    panes = [(name, place) for place in study.places for name in x]
    figure, axes = panels(len(panes), columns=len(x) if len(x) > 1 else 3)
    for axis, (name, place) in zip(axes, panes, strict=True):
        found = related.curves(coded.select([f"{place} *"]), name)
        require_any(found, f"case with an oracle and a {name}")
        style = styles([curve.cases[0] for curve in found])
        drawn: list[float] = []
        for curve in found:
            rows = [table.row(case, k) for k in ("mre", "oracle_mre") for case in curve.cases]
            drawn += [row.value for row in rows]
            _gap(axis, _positions(found, curve, name), rows, style[curve.cases[0].id])
        log_axis(axis, "y", drawn)
        _axis(axis, found, name)
        title = place_title(place)
        axis.set(xlabel=_axis_title(name), ylabel=display("mre").axis, title=title)
    shared_legend(figure, axes)
    return Chart(figure, table)


def _gap(axis: Axes, at: Sequence[float], rows: Sequence[CaseValue], style: Style) -> None:
    """Draw learned errors, then oracle errors, the gap between them, and the best point."""
    values, deviations = np.array([row.point for row in rows]).reshape(2, -1, 2).transpose(2, 0, 1)
    learned, oracle = values
    axis.fill_between(at, oracle, learned, color=style.colour, alpha=0.12, linewidth=0)
    axis.errorbar(at, learned, deviations[0], label="learned", **style.points)
    axis.plot(at, oracle, "--", color=GREY, marker="D", mfc="white", label="oracle")
    best = int(np.nanargmin(learned))
    axis.plot(at[best], learned[best], "o", ms=13, mfc="none", color="black", zorder=3)


@chart_kind("Ladder")
def ladder(
    study: StudyResult,
    *,
    base: Mapping[str, Any] | None = None,
    quantities: Sequence[str] = ("mre", "normal_derivative_jump", "residual_rms", "total"),
) -> Chart:
    """Each step as a percentage of its base, compared seed by seed. Error bars show one standard
    deviation over seeds.

    A line per resolution. Shared and unshared times are not compared.
    """
    wanted = {"objective": None} if base is None else base
    starts = [(case, base_of(study, case, wanted)) for case in study.cases]
    found = [(case, start) for case, start in starts if start is not None]
    require_any(found, "case with its base")
    table = changes(found, quantities, "% of the base", offset=100)
    figure, axes = panels(len(quantities), columns=2, width=4.2)
    for axis, name in zip(axes, quantities, strict=True):
        for number, (place, cases) in enumerate(study.places.items()):
            rows = {case.id: row for case in cases for row in table.rows_of(case, name)}
            colour, marker, line = _LOOKS[number % 4]
            look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": line}
            drawn = list(rows.values())
            draw_rows(axis, range(len(rows)), drawn, label=place_title(place), **look)
            steps = [case.objective or "A0" for case in cases if case.id in rows]
            ticks(axis, range(len(steps)), steps)
        axis.axhline(100, color=GREY, linewidth=0.9, linestyle=":")
        axis.set(title=display(name).words, ylabel=table.words)
    shared_legend(figure, axes)
    return Chart(figure, table)


@chart_kind("Time against resolution")
def time_projection(
    study: StudyResult, *, quantity: str = QUANTITY, to: Sequence[int] = (512, 1024)
) -> Chart:
    """Filled markers and solid lines were measured. Hollow markers and dashed lines were not: they
    continue the power law that was fitted to the measured times of that method.

    They start at the largest grid on which it was measured.
    """
    found = scalings(study, quantity=quantity)
    require_any(found, "times on several grids")
    problems = {one.problem: [o for o in found if o.problem == one.problem] for one in found}
    figure, axes = panels(len(problems), width=5.4, height=3.8, columns=2)
    rows: list[CaseValue] = []
    for axis, (problem, own) in zip(axes, problems.items(), strict=True):
        style = styles([one.curve.cases[0] for one in own])
        grids = sorted({at for one in own for at in one.curve.at} | set(to))
        drawn: list[float] = []
        for one in own:
            case, last = one.curve.cases[0], max(one.measured)
            ahead = {at: one.law.extrapolate(at) for at in grids if at > last}
            for origin, times in (("measured", one.measured), ("extrapolated", ahead)):
                rows += [
                    CaseValue(case, quantity, time, more={"nodes per side": at, "origin": origin})
                    for at, time in times.items()
                ]
            drawn += [*one.measured.values(), *ahead.values()]
            label = f"{one.curve.label}: $D^{{{one.law.exponent:.2f}}}$"
            _projected(axis, one.measured, ahead, style[case.id], label)
        axis.set_xscale("log")
        ticks(axis, grids, [f"{grid}²" for grid in grids])
        log_axis(axis, "y", drawn)
        axis.set(xlabel="grid", ylabel=display(quantity).axis, title=problem.capitalize())
    axes[0].plot([], [], "--o", color=GREY, mfc="white", label="not measured")
    shared_legend(figure, axes)
    return Chart(figure, CaseValues(rows))


def _projected(
    axis: Axes,
    measured: Mapping[float, float],
    ahead: Mapping[float, float],
    style: Style,
    label: str,
) -> None:
    """Draw one method's measured times, and the extrapolated ones that follow."""
    look = style.points | {"linestyle": "-"}
    axis.plot(list(measured), list(measured.values()), label=label, **look)
    last = max(measured)
    path = ([last, *ahead], [measured[last], *ahead.values()])
    axis.plot(*path, color=style.colour, linewidth=9, alpha=0.15, solid_capstyle="butt", zorder=1)
    axis.plot(*path, "--", linewidth=1, color=style.colour)
    axis.plot(list(ahead), list(ahead.values()), style.marker, color=style.colour, mfc="white")
