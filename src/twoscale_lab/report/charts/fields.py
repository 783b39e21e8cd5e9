"""Pictures of one sample: truth, predictions and errors with seams, spectra, densities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.report.axes import log_axis, new_figure
from twoscale.report.figures import draw_fields
from twoscale.report.method_looks import TRUTH, colour
from twoscale_lab.report.charts.style import Style, styles
from twoscale_lab.report.results import CaseResult, StudyResult

_SIDE, _SMALL_SIDE = 1.75, 1.4  # inches of one field, and of one among many
_MANY = 5  # columns
_LETTERS = 12  # of a title per inch


def qualitative(study: StudyResult, *, place: str | None = None) -> Figure:
    """Draw one sample of a place: fields and errors, then spectra and densities of the test set.

    Errors share one colour scale, so that their sizes compare; lines are the borders of patches.
    """
    where = place or next(iter(study.places), "")
    cases = [case for case in study.places.get(where, []) if _array(where, case) in study.fields]
    if not cases:
        raise TwoscaleError(
            f"the record of {study.name} has no fields of {where or 'any case'}: "
            f"{study.record.with_suffix('.npz').name} holds them, run the study again"
        )
    truth = study.fields[f"{where}/truth"]
    columns = 1 + len(cases)
    side = _SIDE if columns <= _MANY else _SMALL_SIDE
    predictions = {
        fill(case.label, int(_LETTERS * side)): study.fields[_array(where, case)] for case in cases
    }
    seams = Grid(truth.shape).common_partition(tuple(cases[0].settings["patches"])).seams
    figure = new_figure(max(side * columns + 0.8, 8), 2 * side + 3.3)
    heights = [2 * side + 0.5, 2.8]
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
    draw_fields(
        upper.subplots(2, columns, squeeze=False),
        study.fields[f"{where}/input"],
        truth,
        predictions,
        seams,
    )
    left, right = lower.subplots(1, 2)
    style = styles(cases)
    _spectra(left, study.fields, where, cases, style)
    _densities(right, study.fields, where, cases, style)
    handles, labels = left.get_legend_handles_labels()
    lower.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5))
    return figure


def _array(place: str, case: CaseResult) -> str:
    return f"{place}/prediction/{case.id}"


def _spectra(
    axis: Axes,
    fields: Mapping[str, np.ndarray],
    place: str,
    cases: Sequence[CaseResult],
    style: Mapping[str, Style],
) -> None:
    truth = fields[f"{place}/spectrum/truth"][1:]
    waves = np.arange(1, len(truth) + 1)
    axis.loglog(waves, truth, color=colour(TRUTH), linewidth=3, alpha=0.35, label=TRUTH)
    for case in cases:
        values = fields[f"{place}/spectrum/{case.id}"][1:]
        own = style[case.id]
        axis.loglog(waves, values, own.line, color=own.colour, linewidth=1.2, label=case.label)
    log_axis(axis, "x", list(waves))
    axis.set(xlabel="radial wave number", ylabel="mean energy")


def _densities(
    axis: Axes,
    fields: Mapping[str, np.ndarray],
    place: str,
    cases: Sequence[CaseResult],
    style: Mapping[str, Style],
) -> None:
    edges = fields[f"{place}/density/edges"]
    truth = fields[f"{place}/density/truth"]
    axis.stairs(truth, edges, color=colour(TRUTH), linewidth=3, alpha=0.35)
    for case in cases:
        own = style[case.id]
        values = fields[f"{place}/density/{case.id}"]
        axis.stairs(values, edges, color=own.colour, linestyle=own.line, linewidth=1.2)
    axis.set(xlabel="value", ylabel="density", yscale="log")
