"""Charts with one bar or dot per case: diagnostics, stages of cost, effects against a base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.report.axes import GREY, bar, log_axis, panels, shared_legend, stage_look
from twoscale.report.display import display, number
from twoscale.representation import pca_stages
from twoscale_lab.report.charts.cases import (
    CaseValues,
    Chart,
    Style,
    changes,
    measured,
    require_any,
    seed_by_seed,
    styles,
)
from twoscale_lab.report.charts.kinds import chart_kind
from twoscale_lab.report.related import with_base
from twoscale_lab.report.results import CaseResult, StudyResult, place_title
from twoscale_lab.study.quantities import TIMED

_RATIO = 20  # bars that differ by more are dots on a logarithmic axis
_SEAMS = tuple(
    f"common_seams.{name}" for name in ("value_trace_error", "normal_derivative_trace_error")
)


@dataclass(frozen=True)
class _CaseRows:
    """Panels side by side, in which the same cases stand from top to bottom, and their styles."""

    figure: Figure
    axes: Sequence[Axes]
    cases: Mapping[int, CaseResult]  # by their lines
    style: Mapping[str, Style]


def _case_rows(
    study: StudyResult, shown: StudyResult, count: int, *, width: float = 2.0, room: float = 0.6
) -> _CaseRows:
    """Return panels for the `shown` cases of a study, in the styles that they have among all.

    Cases of several places stand under headings. `width` of a panel and the `room` above and below
    its cases are in inches.
    """
    lines: list[CaseResult | str] = []
    for place, cases in shown.places.items():
        lines += [place_title(place), *cases] if len(shown.places) > 1 else cases
    names = [line if isinstance(line, str) else line.label for line in lines]
    columns, height = min(count, 4), room + 0.28 * max(len(lines), 2)
    figure, axes = panels(count, columns=columns, width=width, height=height, labels=names)
    for index, axis in enumerate(axes):
        axis.set_yticks(range(len(lines)), names if index % columns == 0 else [""] * len(lines))
        axis.set_ylim(len(lines) - 0.4, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="y", visible=False)
        for label, line in zip(axis.get_yticklabels(), lines, strict=True):
            if isinstance(line, str):
                label.set_fontweight("bold")
    by_line = {k: case for k, case in enumerate(lines) if isinstance(case, CaseResult)}
    return _CaseRows(figure, axes, by_line, styles(study.cases))


def _remark(axis: Axes, line: int, words: str) -> None:
    """Write why a case has no bar."""
    where = ("axes fraction", "data")
    axis.annotate(words, (0.02, line), xycoords=where, va="center", color=GREY, fontsize=9)


@chart_kind("Where the time goes")
def stage_costs(study: StudyResult, *, stages: Sequence[str] = TIMED) -> Chart:
    """Mean seconds of each stage. A fine-tuned case includes the run that it started from. †: a
    shared time. Do not compare it with times without this mark.
    """
    require_any(study.cases, "case with these stages")

    table = measured(study.cases, stages)
    drawn = _case_rows(study, study, 1, width=4.4, room=0.9)
    (axis,), cases = drawn.axes, drawn.cases
    ends = dict.fromkeys(cases, 0.0)
    for stage in stages:
        seconds = {k: np.nan_to_num(table.value(case, stage)) for k, case in cases.items()}
        if any(seconds.values()):
            look = bar(*stage_look(stage)) | {"label": display(stage).words}
            axis.barh(list(ends), list(seconds.values()), left=list(ends.values()), **look)
            ends = {k: end + seconds[k] for k, end in ends.items()}
    for k, case in cases.items():
        mark = " †" if any(table.row(case, stage).shared for stage in stages) else ""
        words = f" {number(ends[k], 'seconds')}{mark}"
        axis.annotate(words, (ends[k], k), va="center", fontsize=9)
    axis.set(xlabel="seconds, mean over seeds", xlim=(0, 1.1 * max(*ends.values(), 1e-9)))
    shared_legend(drawn.figure, drawn.axes)
    return Chart(drawn.figure, table)


@chart_kind("Where the time of the PCA fit goes")
def pca_breakdown(study: StudyResult, *, stages: Sequence[str] | None = None) -> Chart:
    """Mean seconds of each part of the PCA fit."""
    part = study.where(lambda case: case.mean("pca_fit") is not None)
    return stage_costs(part, stages=stages or pca_stages())


@chart_kind("Side by side")
def bars(study: StudyResult, *, quantities: Sequence[str] = ("mre", "ssim")) -> Chart:
    """Each panel shows one quantity of the same cases. Dots replace bars where the axis is
    logarithmic or does not start at zero. Error bars show one standard deviation over seeds.

    An axis is logarithmic if values differ by more than a factor of 20, and has no zero for SSIM.
    """
    usable = [name for name in quantities if any(case.mean(name) for case in study.cases)]
    require_any(usable, f"case with {' or '.join(quantities)}")
    table, drawn = measured(study.cases, usable), _case_rows(study, study, len(usable))
    for axis, name in zip(drawn.axes, usable, strict=True):
        _bars(axis, drawn, table, name)
    return Chart(drawn.figure, table)


def _bars(axis: Axes, drawn: _CaseRows, table: CaseValues, name: str) -> None:
    rows = {k: table.row(case, name) for k, case in drawn.cases.items()}
    known = {k: row for k, row in rows.items() if row.value == row.value}
    means = [row.value for row in known.values()]
    dots = display(name).higher_is_better
    log = not dots and min(means) > 0 and max(means) > _RATIO * min(means)
    for k in rows.keys() - known.keys():
        _remark(axis, k, "none")
    for k, row in known.items():
        own = drawn.style[drawn.cases[k].id]
        if dots or log:
            axis.errorbar(row.value, k, xerr=row.below, markersize=8, **own.dots)
        else:
            axis.barh(k, row.value, xerr=row.deviation or 0.0, **own.bar)
    axis.margins(x=0.12)
    if log:
        log_axis(axis, "x", means, most=3)
    else:
        axis.locator_params(axis="x", nbins=4)
        axis.ticklabel_format(axis="x", scilimits=(-3, 5))
    if not (log or dots):
        axis.set_xlim(0, 1.12 * max(sum(row.point) for row in known.values()))
    axis.set_title(fill(display(name).axis, 24), fontsize=9.5)


@chart_kind("The same seams for all")
def common_seams(study: StudyResult, *, quantities: Sequence[str] = _SEAMS) -> Chart:
    """Errors of the jumps in value and in slope. All methods are measured on the same seams: the
    borders of patches that do not overlap. Error bars show one standard deviation over seeds.
    """
    return bars(study, quantities=quantities)


@chart_kind("Change from the base")
def effects(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = ("mre", "value_trace_error", "normal_derivative_trace_error"),
    ratio: bool = False,
) -> Chart:
    """Change of each quantity from the base case in percent, compared seed by seed. Negative means
    lower. Error bars show one standard deviation over seeds.

    `base` says in which properties the base differs, such as `objective: null`. With `ratio` the
    change is a speed-up, base over case. Shared and unshared times are not compared.
    """
    found = with_base(study, base)
    require_any(found, "case with its base")
    bases = {case.id: start for case, start in found}
    words = "times as fast as the base" if ratio else "change from the base, %"

    table = changes(found, quantities, words, scale=1 if ratio else 100, ratio=ratio)
    shown = study.where(lambda case: case.id in bases)
    drawn = _case_rows(study, shown, len(quantities), width=2.2)
    for axis, name in zip(drawn.axes, quantities, strict=True):
        for k, case in drawn.cases.items():
            if case.is_shared_time(name) != bases[case.id].is_shared_time(name):
                _remark(axis, k, "not measured alike")
            for row in table.rows_of(case, name):
                axis.barh(k, row.value, xerr=row.deviation or 0.0, **drawn.style[case.id].bar)
                _name_bar(axis, k, *row.point, ratio=ratio)
        axis.axvline(1 if ratio else 0, color=GREY, linewidth=1)
        axis.set_title(fill(display(name).words, 24), fontsize=9.5)
        axis.set_xlabel(words)
        axis.margins(x=0.32)
        axis.locator_params(axis="x", nbins=5)
    return Chart(drawn.figure, table)


def _name_bar(axis: Axes, line: int, mean: float, deviation: float, *, ratio: bool) -> None:
    """Write a change at the end of its bar."""
    end = mean + np.copysign(deviation, mean)
    axis.annotate(
        f"{mean:.2f} \N{MULTIPLICATION SIGN}" if ratio else f"{mean:+.1f}",
        (end, line),
        (4 if end >= 0 else -4, 0),
        textcoords="offset points",
        va="center",
        ha="left" if end >= 0 else "right",
        fontsize=9,
    )


@chart_kind("Speed-ups over the base")
def speed_ups(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = ("pca_fit", "total"),
) -> Chart:
    """How many times as fast as the base case, compared seed by seed. Error bars show one standard
    deviation over seeds.
    """
    return effects(study, base=base, quantities=quantities, ratio=True)


@chart_kind("Calibrated weights")
def loss_weights(study: StudyResult) -> Chart:
    """The weight of each term of the fine-tuning objective. Each dot is a seed."""
    weights = {
        case.id: {k for cell in case.cells for k in cell.get("weights") or ()}
        for case in study.cases
    }
    terms = [f"weights.{term}" for term in sorted(set().union(*weights.values()))]
    require_any(terms, "weights of fine-tuning objectives")

    tuned = study.where(lambda case: bool(weights[case.id]))
    table, drawn = seed_by_seed(tuned.cases, terms), _case_rows(study, tuned, len(terms))
    for axis, term in zip(drawn.axes, terms, strict=True):
        for k, case in drawn.cases.items():
            values = [row.value for row in table.rows_of(case, term)]
            axis.plot(values, [k] * len(values), alpha=0.8, **drawn.style[case.id].dots)
        log_axis(axis, "x", [row.value for row in table.rows if row.quantity == term], most=4)
        axis.set_title(f"weight of {term.partition('.')[2].replace('_', ' ')}", fontsize=9.5)
    return Chart(drawn.figure, table)
