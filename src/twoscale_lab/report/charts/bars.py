"""Charts with one bar or dot per case: diagnostics, stages of cost, effects against a base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.report.axes import GREY, bar, log_axis, panels, shared_legend, stage_look
from twoscale.report.display import display, number
from twoscale.representation import pca_stages
from twoscale_lab.report.charts.style import Style, in_display_units, require_any, styles
from twoscale_lab.report.related import change_from, with_base
from twoscale_lab.report.results import CaseResult, StudyResult, place_title
from twoscale_lab.study.quantities import TIMED

_RATIO = 20  # bars that differ by more are dots on a logarithmic axis
_SEAMS = tuple(
    f"common_seams.{name}" for name in ("value_trace_error", "normal_derivative_trace_error")
)


def bars(study: StudyResult, *, quantities: Sequence[str] = ("mre", "ssim")) -> Figure:
    """Draw quantities side by side, one bar per case with one standard deviation.

    Dots replace the bars if values differ by more than a factor of 20, and for SSIM: on an axis
    without zero the length of a bar means nothing.
    """
    rows = _rows(study)
    usable = [name for name in quantities if any(case.mean(name) for case in study.cases)]
    require_any(usable, f"case with {' or '.join(quantities)}")
    columns = min(len(usable), 4)
    figure, axes = panels(
        len(usable),
        columns=columns,
        width=2.0,
        height=0.5 + 0.27 * len(rows),
        labels=_row_names(rows),
    )
    style = styles(study.cases)
    for index, (axis, name) in enumerate(zip(axes, usable, strict=True)):
        _draw_rows(axis, rows, style, name)
        _row_labels(axis, rows, first=index % columns == 0)
    return figure


def common_seams(study: StudyResult, *, quantities: Sequence[str] = _SEAMS) -> Figure:
    """Draw the seam errors of all methods on the same seams, those of non-overlapping patches."""
    return bars(study, quantities=quantities)


Row = CaseResult | str  # a case, or the heading of a place


def _rows(study: StudyResult) -> list[Row]:
    """Return the cases from top to bottom, under a heading each if there are several places."""
    rows: list[Row] = []
    for place, cases in study.places.items():
        rows += [place_title(place), *cases] if len(study.places) > 1 else cases
    return rows


def _draw_rows(axis: Axes, rows: Sequence[Row], style: Mapping[str, Style], name: str) -> None:
    cases = {row: case for row, case in enumerate(rows) if isinstance(case, CaseResult)}
    points = {row: in_display_units(case.spread(name), name) for row, case in cases.items()}
    known = {row: point for row, point in points.items() if point[0] == point[0]}
    means = [mean for mean, _ in known.values()]
    dots = display(name).higher_is_better
    log = not dots and min(means) > 0 and max(means) > _RATIO * min(means)
    for row in points.keys() - known.keys():
        where = ("axes fraction", "data")
        axis.annotate("none", (0.02, row), xycoords=where, va="center", color=GREY, fontsize=9)
    for row, (mean, deviation) in known.items():
        own = style[cases[row].id]
        if dots or log:
            axis.errorbar(mean, row, xerr=min(deviation, 0.95 * mean), markersize=8, **own.dots)
        else:
            axis.barh(row, mean, xerr=deviation, **own.bar)
    axis.margins(x=0.12)
    if log:
        log_axis(axis, "x", means, most=3)
    else:
        axis.locator_params(axis="x", nbins=4)
        axis.ticklabel_format(axis="x", scilimits=(-3, 5))
    if not (log or dots):
        axis.set_xlim(0, 1.12 * max(map(sum, known.values())))
    axis.set_title(fill(display(name).axis, 24), fontsize=9.5)
    axis.grid(axis="y", visible=False)


def _row_labels(axis: Axes, rows: Sequence[Row], *, first: bool) -> None:
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_yticks(range(len(rows)))
    axis.tick_params(axis="y", length=0)
    axis.set_yticklabels(_row_names(rows) if first else [])
    if first:
        for label, row in zip(axis.get_yticklabels(), rows, strict=True):
            if isinstance(row, str):
                label.set_fontweight("bold")


def _row_names(rows: Sequence[Row]) -> list[str]:
    return [row if isinstance(row, str) else row.label for row in rows]


def stage_costs(study: StudyResult, *, stages: Sequence[str] = TIMED) -> Figure:
    """Draw the mean seconds of each stage, stacked, one bar per case."""
    rows = _rows(study)
    require_any(rows, "case with these stages")
    figure, (axis,) = panels(1, width=4.4, height=0.9 + 0.28 * len(rows), labels=_row_names(rows))
    cases = [(k, row) for k, row in enumerate(rows) if isinstance(row, CaseResult)]
    ends = np.zeros(len(rows))
    for stage in stages:
        seconds = {k: case.mean(stage) or 0.0 for k, case in cases}
        if any(seconds.values()):
            look = bar(*stage_look(stage))
            places, lengths = list(seconds), list(seconds.values())
            axis.barh(places, lengths, left=ends[places], label=display(stage).words, **look)
            ends[places] += list(seconds.values())
    for k, case in cases:
        mark = " †" if any(case.is_shared_time(stage) for stage in stages) else ""
        words = f" {number(ends[k], 'seconds')}{mark}"
        axis.annotate(words, (ends[k], k), va="center", fontsize=9)
    _row_labels(axis, rows, first=True)
    axis.set(xlabel="seconds, mean over seeds", xlim=(0, 1.1 * max(ends.max(), 1e-9)))
    axis.grid(axis="y", visible=False)
    shared_legend(figure, [axis])
    return figure


def pca_breakdown(study: StudyResult, *, stages: Sequence[str] | None = None) -> Figure:
    """Draw the seconds of each part of the PCA fit, stacked, a bar per case that has one."""
    part = study.where(lambda case: case.mean("pca_fit") is not None)
    return stage_costs(part, stages=stages or pca_stages())


def effects(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = ("mre", "value_trace_error", "normal_derivative_trace_error"),
    ratio: bool = False,
) -> Figure:
    """Draw the paired change of each case from its base: mean over seeds, one deviation.

    `base` says in which properties the base differs, such as `objective: null`. In percent, or
    with `ratio` as a speed-up, base over case. Shared and unshared times are not compared.
    """
    found = {case.id: start for case, start in with_base(study, base)}
    require_any(found, "case with its base")
    part = study.where(lambda case: case.id in found)
    rows = _rows(part)
    columns = min(len(quantities), 4)
    figure, axes = panels(
        len(quantities),
        columns=columns,
        width=2.2,
        height=0.6 + 0.28 * max(len(rows), 2),
        labels=_row_names(rows),
    )
    style = styles(study.cases)
    for index, (axis, name) in enumerate(zip(axes, quantities, strict=True)):
        for k, row in enumerate(rows):
            if isinstance(row, CaseResult):
                _effect(axis, k, row, found[row.id], style[row.id], name, ratio=ratio)
        _row_labels(axis, rows, first=index % columns == 0)
        axis.axvline(1 if ratio else 0, color=GREY, linewidth=1)
        axis.set_title(fill(display(name).words, 24), fontsize=9.5)
        axis.set_xlabel("times as fast as the base" if ratio else "change from the base, %")
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.32)
        axis.locator_params(axis="x", nbins=5)
    return figure


def speed_ups(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = ("pca_fit", "total"),
) -> Figure:
    """Draw how many times as fast as its base each case is, stage by stage."""
    return effects(study, base=base, quantities=quantities, ratio=True)


def _effect(
    axis: Axes,
    place: int,
    case: CaseResult,
    base: CaseResult,
    style: Style,
    name: str,
    *,
    ratio: bool,
) -> None:
    if case.is_shared_time(name) != base.is_shared_time(name):
        where = ("axes fraction", "data")
        words = "not measured alike"
        axis.annotate(words, (0.03, place), xycoords=where, va="center", color=GREY, fontsize=9)
        return
    found = change_from(base, case, name, ratio=ratio)
    if found is None:
        return
    scale = 1.0 if ratio else 100.0
    mean, deviation = scale * found.mean, scale * (found.deviation or 0.0)
    axis.barh(place, mean, xerr=deviation, **style.bar)
    words = f"{mean:.2f} \N{MULTIPLICATION SIGN}" if ratio else f"{mean:+.1f}"
    end = mean + np.copysign(deviation, mean)
    axis.annotate(
        words,
        (end, place),
        (4 if end >= 0 else -4, 0),
        textcoords="offset points",
        va="center",
        ha="left" if end >= 0 else "right",
        fontsize=9,
    )


def weight_terms(cases: Sequence[CaseResult]) -> list[str]:
    """Return the terms of fine-tuning objectives whose weights the cases have."""
    return sorted({k for case in cases for cell in case.cells for k in cell.get("weights") or ()})


def loss_weights(study: StudyResult) -> Figure:
    """Draw the calibrated weight of each term of each objective, one dot per seed."""
    tuned = study.where(lambda case: bool(weight_terms([case])))
    terms = weight_terms(tuned.cases)
    require_any(terms, "weights of fine-tuning objectives")
    rows = _rows(tuned)
    figure, axes = panels(
        len(terms),
        columns=4,
        width=2.0,
        height=0.6 + 0.27 * len(rows),
        labels=_row_names(rows),
    )
    style = styles(study.cases)
    for index, (axis, term) in enumerate(zip(axes, terms, strict=True)):
        drawn = []
        for k, row in enumerate(rows):
            if isinstance(row, CaseResult):
                values = list(row.values(f"weights.{term}").values())
                drawn += values
                axis.plot(values, [k] * len(values), alpha=0.8, **style[row.id].dots)
        log_axis(axis, "x", drawn, most=4)
        _row_labels(axis, rows, first=index % 4 == 0)
        axis.set_title(f"weight of {term.replace('_', ' ')}", fontsize=9.5)
    return figure
