"""Charts of equivalence audits: intervals of changes against margins declared beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from twoscale.report.axes import GREY, panels
from twoscale.report.display import display
from twoscale_lab.report.audits import QUANTITIES, Audited, audited
from twoscale_lab.report.charts.kinds import chart_kind
from twoscale_lab.report.charts.style import styles
from twoscale_lab.report.charts.values import CaseValue, CaseValues, Chart, require_any
from twoscale_lab.report.results import StudyResult
from twoscale_lab.study.paper.audit import Margin

_UNITS = {"relative": "change, %", "absolute": "change", "speed_up": "times as fast"}
_COLUMNS = 3
_AGREEING = ("equivalent", "pass")


@chart_kind("Equivalence audit")
def equivalence(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = QUANTITIES,
    margins: Mapping[str, Any] | None = None,
) -> Chart:
    """The 90 % interval of the mean change, compared seed by seed. The shaded band is the margin,
    which was set in advance. An interval inside the band means equivalent. An interval across its
    edge is inconclusive.
    """
    found = audited(study, base=base, quantities=quantities, margins=margins)
    require_any(found, "case with its base")
    words = list(dict.fromkeys(one.words for one in found))
    shown = {name: [one for one in found if one.quantity == name] for name in quantities}
    shown = {name: own for name, own in shown.items() if own}
    height = 0.9 + 0.36 * len(words)
    figure, axes = panels(len(shown), width=2.3, height=height, columns=_COLUMNS, labels=words)
    style = styles(study.cases)
    rows = {id(one): _row(one) for one in found}
    for index, (axis, (name, own)) in enumerate(zip(axes, shown.items(), strict=True)):
        margin = own[0].audit.margin
        _band(axis, margin)
        for one in own:
            line, row, look = words.index(one.words), rows[id(one)], style[one.case.id]
            ends = [float(row.more[end]) for end in ("lower", "upper")]
            axis.plot(ends, [line, line], color=look.colour, linewidth=3)
            axis.plot(row.value, line, marker=look.marker, color=look.colour, ms=8)
            axis.annotate(
                one.audit.decision,
                (0.99, line - 0.26),
                xycoords=("axes fraction", "data"),
                va="center",
                ha="right",
                fontsize=9,
                color="#333333" if one.audit.decision in _AGREEING else "#A23B00",
            )
        axis.set_yticks(range(len(words)), words if index % _COLUMNS == 0 else [""] * len(words))
        axis.set_ylim(len(words) - 0.4, -0.6)
        axis.set(title=display(name).words, xlabel=_UNITS[margin.kind])
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.2)
        axis.locator_params(axis="x", nbins=5)
    return Chart(figure, CaseValues(list(rows.values())))


def _scale(margin: Margin) -> float:
    return 100.0 if margin.kind == "relative" else 1.0


def _row(one: Audited) -> CaseValue:
    """Return a change, the ends of its interval, its margin and the decision."""
    scale, change, margin = _scale(one.audit.margin), one.audit.change, one.audit.margin
    low, high = (change.estimate if end is None else end for end in (change.lower, change.upper))
    more: dict[str, str | float] = {
        "comparison": one.words,
        "change": _UNITS[margin.kind],
        "lower": scale * low,
        "upper": scale * high,
        "margin": scale * margin.size,
        "decision": one.audit.decision,
    }
    return CaseValue(one.case, one.quantity, scale * change.estimate, more=more)


def _band(axis: Axes, margin: Margin) -> None:
    edge = _scale(margin) * margin.size
    if margin.kind == "speed_up":
        axis.axvline(edge, color=GREY, linestyle="--", linewidth=1)
    else:
        axis.axvspan(-edge, edge, color="#dfe7ee", zorder=0)
        axis.axvline(0, color=GREY, linewidth=0.9)
