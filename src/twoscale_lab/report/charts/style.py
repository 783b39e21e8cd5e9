"""The style of charts: a colour and marker for each method, panels, axes for print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twoscale.report.axes import bar, lighten, shade
from twoscale.report.method_looks import colour, marker
from twoscale_lab.report.results import CaseResult

PALE = "#9aa3ad"
"""The colour of lines that join points."""

_HATCHES = ("", "////", "\\\\\\\\", "xxxx", "||||", "----", "++++")


@dataclass(frozen=True)
class Style:
    """How a case is drawn; cases of a chart never differ by colour alone."""

    colour: str
    marker: str
    line: str
    hatch: str

    @property
    def points(self) -> dict[str, Any]:
        """Return the options of a plotted line with markers."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}

    @property
    def dots(self) -> dict[str, Any]:
        """Return the options of markers alone."""
        return self.points | {"linestyle": "none"}

    @property
    def bar(self) -> dict[str, Any]:
        """Return the options of a horizontal bar."""
        return bar(self.colour, self.hatch)


def styles(cases: Sequence[CaseResult]) -> dict[str, Style]:
    """Return the style of each case by its id.

    The method gives colour and marker. Fine-tuning makes the colour darker, and further variants
    of a method in the same place make it lighter, each with a hatch and line of its own.
    """
    found: dict[str, Style] = {}
    seen: dict[tuple[str, str, bool], int] = {}
    for case in cases:
        key = (case.place, case.method, bool(case.objective))
        number = seen.setdefault(key, 0)
        seen[key] += 1
        found[case.id] = _style(case, number)
    return found


def _style(case: CaseResult, number: int) -> Style:
    tuned = bool(case.objective)
    base = shade(colour(case.method), 0.62 if tuned else 1.0)
    lines = ("-", "--", ":", "-.")
    start = 1 if tuned else 0
    return Style(
        colour=lighten(base, min(0.14 * number, 0.5)),
        marker=marker(case.method, tuned=tuned)
        if number == 0
        else ("o", "s", "^", "D", "v", "P", "X")[number % 7],
        line=lines[(start + number) % len(lines)],
        hatch=_HATCHES[(start + number) % len(_HATCHES)],
    )
