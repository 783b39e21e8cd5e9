"""Charts of equivalence audits: intervals of changes against margins declared beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.report.axes import GREY, panels
from twoscale.report.display import display
from twoscale_lab.report.audits import QUANTITIES, audited
from twoscale_lab.report.charts.style import Style, require_any, styles
from twoscale_lab.report.results import StudyResult
from twoscale_lab.study.paper.audit import Audit, Margin

_UNITS = {"relative": "change, %", "absolute": "change", "speed_up": "times as fast"}
_COLUMNS = 3


def equivalence(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = QUANTITIES,
    margins: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw the 90 % interval of each paired change against its margin, and the decision.

    The shaded band is the margin: an interval within it shows equivalence, one beyond it a
    difference, and one that crosses its edge shows neither.
    """
    found = audited(study, base=base, quantities=quantities, margins=margins)
    require_any(found, "case with its base")
    compared = {(one.case.id, one.base.id): one.words for one in found}
    rows, words = list(compared), list(compared.values())
    names = [name for name in quantities if any(one.quantity == name for one in found)]
    height = 0.9 + 0.36 * len(rows)
    figure, axes = panels(len(names), width=2.3, height=height, columns=_COLUMNS, labels=words)
    style = styles(study.cases)
    for index, (axis, name) in enumerate(zip(axes, names, strict=True)):
        shown = [one for one in found if one.quantity == name]
        margin = shown[0].audit.margin
        _band(axis, margin)
        for one in shown:
            _interval(axis, rows.index((one.case.id, one.base.id)), one.audit, style[one.case.id])
        axis.set_yticks(range(len(rows)), words if index % _COLUMNS == 0 else [""] * len(rows))
        axis.set_ylim(len(rows) - 0.4, -0.6)
        axis.set(title=display(name).words, xlabel=_UNITS[margin.kind])
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.2)
        axis.locator_params(axis="x", nbins=5)
    return figure


def _scale(margin: Margin) -> float:
    return 100.0 if margin.kind == "relative" else 1.0


def _band(axis: Axes, margin: Margin) -> None:
    edge = _scale(margin) * margin.size
    if margin.kind == "speed_up":
        axis.axvline(edge, color=GREY, linestyle="--", linewidth=1)
    else:
        axis.axvspan(-edge, edge, color="#dfe7ee", zorder=0)
        axis.axvline(0, color=GREY, linewidth=0.9)


def _interval(axis: Axes, place: int, found: Audit, style: Style) -> None:
    scale, change = _scale(found.margin), found.change
    low, high = (change.estimate if end is None else end for end in (change.lower, change.upper))
    axis.plot([scale * low, scale * high], [place, place], color=style.colour, linewidth=3)
    axis.plot(scale * change.estimate, place, marker=style.marker, color=style.colour, ms=8)
    axis.annotate(
        found.decision,
        (0.99, place - 0.26),
        xycoords=("axes fraction", "data"),
        va="center",
        ha="right",
        fontsize=9,
        color="#333333" if found.decision in ("equivalent", "pass") else "#A23B00",
    )
