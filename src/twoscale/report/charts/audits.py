"""Charts of equivalence audits: intervals of changes against margins declared beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.report.charts.style import GREY, Style, needed, panels, styles
from twoscale.report.display import display
from twoscale.report.related import base_of
from twoscale.report.results import CaseResult, StudyResult, text
from twoscale.study.audit import MARGINS, Audit, Margin, audit, read_margins

_UNITS = {"relative": "change, %", "absolute": "change", "speed_up": "times as fast"}
_COLUMNS = 3


def equivalence(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = ("mre", "oracle_mre", "ssim"),
    margins: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw the 90 % interval of each paired change against its margin, and the decision.

    The shaded band is the margin: an interval within it shows equivalence, one beyond it a
    difference, and one that crosses its edge shows neither.
    """
    known = read_margins(MARGINS if margins is None else margins)
    usable = [name for name in quantities if name in known]
    compared = [
        (case, start)
        for case in study.cases
        if (start := base_of(study, case, base)) is not None and start is not case
    ]
    needed(compared, "case with its base")
    words = [_words(*pair, base) for pair in compared]
    height = 0.9 + 0.36 * len(compared)
    figure, axes = panels(len(usable), width=2.3, height=height, columns=_COLUMNS, labels=words)
    style = styles(study.cases)
    for index, (axis, name) in enumerate(zip(axes, usable, strict=True)):
        margin = known[name]
        _band(axis, margin)
        for place, (case, start) in enumerate(compared):
            found = audit(case.values(name), start.values(name), margin)
            if found is not None:
                _interval(axis, place, found, style[case.id])
        labels = words if index % _COLUMNS == 0 else [""] * len(words)
        axis.set_yticks(range(len(compared)), labels)
        axis.set_ylim(len(compared) - 0.4, -0.6)
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
        fontsize=7.5,
        color="#333333" if found.decision in ("equivalent", "pass") else "#A23B00",
    )


def _words(case: CaseResult, base: CaseResult, changes: Mapping[str, Any]) -> str:
    """Return the comparison in words: `Two-scale: randomized, not full`."""
    method = case.label.split(",")[0]
    own, other = (
        " ".join(text(one.settings.get(name.split(".")[-1])) for name in changes)
        for one in (case, base)
    )
    return f"{method}: {own} against {other}"
