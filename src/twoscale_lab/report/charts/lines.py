"""Charts along an axis: quantities against resolution, training size or a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.methods.settings import setting_text
from twoscale.report.axes import GREY, log_axis, panels, shared_legend, ticks
from twoscale.report.display import display
from twoscale_lab.report.charts.style import Style, in_display_units, require_any, styles
from twoscale_lab.report.related import Curve, base_of, change_from, curves
from twoscale_lab.report.results import StudyResult, place_title
from twoscale_lab.report.scaling import QUANTITY, Scaling, scalings

_AXES = {"resolution": "nodes per side", "training": "training fields"}


def curves_along(
    study: StudyResult,
    *,
    x: str = "resolution",
    quantities: Sequence[str] = ("mre", "ssim"),
    oracle: bool = False,
) -> Figure:
    """Draw quantities against resolution, training size or a setting, a line per method.

    With `oracle`, the error of the representation alone is added to the learned one, dashed and
    hollow. Shared times are hollow, too, and no line joins them with unshared ones. Bars are one
    standard deviation.
    """
    parts = split(study, x)
    panes = [
        (title, part, name)
        for title, part in parts.items()
        for name in quantities
        if any(case.mean(name) is not None for case in part.cases)
    ]
    require_any(panes, f"case with {' or '.join(quantities)}")
    figure, axes = panels(len(panes), columns=min(len(quantities), 3))
    for axis, (title, part, name) in zip(axes, panes, strict=True):
        found = curves(part, x)
        _lines(axis, found, x, name)
        if oracle and name == "mre":
            _lines(axis, found, x, "oracle_mre", dashed=True)
        _axis(axis, found, x)
        axis.set(xlabel=_axis_title(x), ylabel=display(name).axis, title=title)
    if oracle:
        axes[0].plot([], [], color=GREY, linestyle="--", marker="o", mfc="white", label="oracle")
    if any(case.is_shared_time(name) for _, part, name in panes for case in part.cases):
        axes[0].plot([], [], "o", color=GREY, mfc="white", label="† shared time")
    shared_legend(figure, axes)
    return figure


def split(study: StudyResult, x: str) -> dict[str, StudyResult]:
    """Return the parts of a study that are drawn in panels of their own, by their titles."""
    if x == "resolution":
        names = list(dict.fromkeys(case.problem for case in study.cases))
        return {name.capitalize(): study.select(properties={"problem": name}) for name in names}
    return {place_title(place): study.select([f"{place} *"]) for place in study.places}


def _lines(axis: Axes, found: Sequence[Curve], x: str, name: str, dashed: bool = False) -> None:
    drawn = []
    style = styles([curve.cases[0] for curve in found])
    for curve in found:
        own = style[curve.cases[0].id]
        points = [in_display_units(case.spread(name), name) for case in curve.cases]
        means, spreads = np.array(points).T
        below = np.minimum(spreads, 0.95 * means)  # stays on a logarithmic axis
        drawn += [*means, *(() if dashed else (*(means - below), *(means + spreads)))]
        at = positions(found, curve, x)
        shares = [k for k, case in enumerate(curve.cases) if case.is_shared_time(name)]
        axis.plot([at[k] for k in shares], means[shares], mfc="white", zorder=3, **own.dots)
        look = own.points | ({"linestyle": "--"} if dashed else {})
        for number, part in enumerate(curve.comparable_parts(name)):
            axis.errorbar(
                at[part],
                means[part],
                yerr=None if dashed else [below[part], spreads[part]],
                label=None if dashed or number else curve.label,
                linewidth=1.0 if dashed else 1.5,
                mfc="white" if dashed else own.colour,
                **look,
            )
    if not display(name).higher_is_better:
        log_axis(axis, "y", drawn)


def positions(found: Sequence[Curve], curve: Curve, x: str) -> list[float]:
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


def trainability(study: StudyResult, *, x: Sequence[str]) -> Figure:
    """Draw learned and oracle error against settings, and shade the gap between them.

    A panel per setting and problem; a ring marks the setting with the lowest learned error.
    """
    panes = [(name, title, part) for title, part in split(study, "").items() for name in x]
    figure, axes = panels(len(panes), columns=len(x) if len(x) > 1 else 3)
    for axis, (name, title, part) in zip(axes, panes, strict=True):
        coded = part.where(lambda case: case.mean("oracle_mre") is not None)
        found = curves(coded, name)
        require_any(found, f"case with an oracle and a {name}")
        style = styles([curve.cases[0] for curve in found])
        drawn: list[float] = []
        for curve in found:
            drawn += _gap(axis, curve, positions(found, curve, name), style[curve.cases[0].id])
        log_axis(axis, "y", drawn)
        _axis(axis, found, name)
        axis.set(xlabel=_axis_title(name), ylabel=display("mre").axis, title=title)
    shared_legend(figure, axes)
    return figure


def _gap(axis: Axes, curve: Curve, at: list[float], style: Style) -> list[float]:
    """Draw a curve's learned and oracle error, the gap between them, and the best point."""
    learned, oracle = (
        np.array([in_display_units(case.spread(name), name) for case in curve.cases]).T
        for name in ("mre", "oracle_mre")
    )
    axis.fill_between(at, oracle[0], learned[0], color=style.colour, alpha=0.12, linewidth=0)
    axis.errorbar(at, *learned, label="learned", **style.points)
    axis.plot(at, oracle[0], "--", color=GREY, marker="D", mfc="white", label="oracle")
    best = int(np.nanargmin(learned[0]))
    axis.plot(at[best], learned[0][best], "o", ms=13, mfc="none", color="black", zorder=3)
    return [*learned[0], *oracle[0]]


def ladder(
    study: StudyResult,
    *,
    base: Mapping[str, Any] | None = None,
    quantities: Sequence[str] = ("mre", "normal_derivative_jump", "residual_rms", "total"),
) -> Figure:
    """Draw the steps of a ladder as percentages of its base, a line per resolution.

    Shared and unshared times are not compared.
    """
    changes = {"objective": None} if base is None else base
    starts = {case.id: base_of(study, case, changes) for case in study.cases}
    require_any([start for start in starts.values() if start], "case with its base")
    figure, axes = panels(len(quantities), columns=2, width=4.2)
    for axis, name in zip(axes, quantities, strict=True):
        for number, (place, cases) in enumerate(study.places.items()):
            found = [
                (case, change)
                for case in cases
                if (start := starts[case.id]) is not None
                and (change := change_from(start, case, name)) is not None
            ]
            axis.errorbar(
                range(len(found)),
                [100 * (1 + change.mean) for _, change in found],
                yerr=[100 * (change.deviation or 0.0) for _, change in found],
                label=place_title(place),
                color=("#009E73", "#D55E00", "#0072B2", "#CC79A7")[number % 4],
                marker="osD^"[number % 4],
                linestyle=("-", "--", ":", "-.")[number % 4],
            )
            ticks(axis, range(len(found)), [case.objective or "A0" for case, _ in found])
        axis.axhline(100, color=GREY, linewidth=0.9, linestyle=":")
        axis.set(title=display(name).words, ylabel="% of the base")
    shared_legend(figure, axes)
    return figure


def time_projection(
    study: StudyResult, *, quantity: str = QUANTITY, to: Sequence[int] = (512, 1024)
) -> Figure:
    """Draw time against resolution, its power law, and the law's extrapolation.

    Solid lines and filled markers were measured. Dashed lines and hollow markers continue a
    method's least-squares power law from the largest grid on which it was measured.
    """
    found = scalings(study, quantity=quantity)
    require_any(found, "times on several grids")
    problems = list(dict.fromkeys(one.problem for one in found))
    figure, axes = panels(len(problems), width=5.4, height=3.8, columns=2)
    for axis, problem in zip(axes, problems, strict=True):
        own = [one for one in found if one.problem == problem]
        style = styles([one.curve.cases[0] for one in own])
        grids = sorted({at for one in own for at in one.curve.at} | set(to))
        drawn = [
            seconds
            for one in own
            for seconds in _projected(axis, one, style[one.curve.cases[0].id], grids)
        ]
        axis.set_xscale("log")
        ticks(axis, grids, [f"{grid}²" for grid in grids])
        log_axis(axis, "y", drawn)
        axis.set(xlabel="grid", ylabel=display(quantity).axis, title=problem.capitalize())
    axes[0].plot([], [], "--o", color=GREY, mfc="white", label="not measured")
    shared_legend(figure, axes)
    return figure


def _projected(axis: Axes, scaling: Scaling, style: Style, grids: Sequence[int]) -> list[float]:
    """Draw one method's measured and extrapolated times; return both."""
    measured, law = scaling.measured, scaling.law
    last = max(measured)
    ahead = {at: law.extrapolate(at, anchored=True).estimate for at in grids if at > last}
    axis.plot(
        list(measured),
        list(measured.values()),
        label=f"{scaling.curve.label}: $D^{{{law.exponent:.2f}}}$",
        **(style.points | {"linestyle": "-"}),
    )
    beyond = {last: measured[last]} | ahead
    path = (list(beyond), list(beyond.values()))
    axis.plot(*path, color=style.colour, linewidth=9, alpha=0.15, solid_capstyle="butt", zorder=1)
    axis.plot(*path, "--", linewidth=1, color=style.colour)
    axis.plot(list(ahead), list(ahead.values()), style.marker, color=style.colour, mfc="white")
    return [*measured.values(), *ahead.values()]
