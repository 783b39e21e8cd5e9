"""Cases in charts: their values, from which picture, numbers and CSV follow, and their looks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.errors import TwoscaleError
from twoscale.report.axes import bar, lighten, shade
from twoscale.report.display import display
from twoscale.report.method_looks import colour, marker
from twoscale.report.picture import ChartTable, ChartValue
from twoscale_lab.report.related import change_from
from twoscale_lab.report.results import CaseResult, place_title

_NONE = float("nan")
_SHARED = "shared"  # the column that marks such times


@dataclass(frozen=True)
class CaseValue:
    """A value of a chart, in the unit in which it is shown: NaN if it was not measured.

    `case` is a case of a study or, where there is none, words; `more` has the values of further
    columns by their headings.
    """

    case: CaseResult | str
    quantity: str
    value: float = _NONE
    deviation: float | None = None  # of the seeds, where there are several
    more: Mapping[str, str | float] = field(default_factory=dict)

    @property
    def point(self) -> tuple[float, float]:
        """Return the value and its deviation, which is 0 where it is not known."""
        return self.value, self.deviation or 0.0

    @property
    def below(self) -> float:
        """Return the length of an error bar that stays on a logarithmic axis."""
        return min(self.deviation or 0.0, 0.95 * self.value)

    @property
    def shared(self) -> bool:
        """Say whether it is a time that other work shared."""
        return _SHARED in self.more


@dataclass(frozen=True)
class CaseValues:
    """All values of a chart, one a row; `words` say what was computed of the quantities."""

    rows: Sequence[CaseValue]
    note: str = ""
    words: str = ""

    def row(self, case: CaseResult, quantity: str) -> CaseValue:
        """Return the first value of a case, or a row without value."""
        return next(iter(self.rows_of(case, quantity)), CaseValue(case, quantity))

    def value(self, case: CaseResult, quantity: str) -> float:
        """Return the first value of a case, NaN if there is none."""
        return self.row(case, quantity).value

    def rows_of(self, case: CaseResult | str, quantity: str) -> list[CaseValue]:
        """Return all values of a case, such as those of its seeds."""
        return self._index.get((_key(case), quantity), [])

    @cached_property
    def _index(self) -> dict[tuple[str, str], list[CaseValue]]:
        found: dict[tuple[str, str], list[CaseValue]] = {}
        for row in self.rows:
            found.setdefault((_key(row.case), row.quantity), []).append(row)
        return found

    @property
    def cases(self) -> list[CaseResult | str]:
        """Return the cases in order, each once."""
        return list({_key(row.case): row.case for row in self.rows}.values())

    @property
    def table(self) -> ChartTable:
        """Return the rows as the table of a picture."""
        more = list(dict.fromkeys(name for row in self.rows for name in row.more))
        header = ["case", "grid", *more, "quantity", "value", "sd"]
        return ChartTable(header, [self._values(row, more) for row in self.rows], self.note)

    def _values(self, row: CaseValue, more: Iterable[str]) -> list[ChartValue]:
        case, shown = row.case, display(row.quantity)
        return [
            *((case, "") if isinstance(case, str) else (case.label, place_title(case.place))),
            *(row.more.get(name) for name in more),
            f"{shown.words}: {self.words}" if self.words else shown.axis,
            row.value,
            row.deviation,
        ]


def _key(case: CaseResult | str) -> str:
    return case if isinstance(case, str) else case.id


def draw_rows(
    axis: Axes, at: Sequence[float], rows: Sequence[CaseValue], *, bars: bool = True, **look: Any
) -> None:
    """Draw values with one deviation up and down, which stays on a logarithmic axis."""
    below, above = ([row.below for row in rows], [row.deviation or 0.0 for row in rows])
    values = [row.value for row in rows]
    axis.errorbar(at, values, yerr=[below, above] if bars else None, **look)


class Chart(NamedTuple):
    """A figure and the values that it shows."""

    figure: Figure
    values: CaseValues


def measured(cases: Iterable[CaseResult], quantities: Sequence[str]) -> CaseValues:
    """Return mean and deviation over seeds of the quantities that each case has."""
    rows = []
    for case in cases:
        for name in dict.fromkeys(quantities):
            found = case.spread(name)
            if found is not None:
                scale = display(name).scale
                deviation = None if found.deviation is None else scale * found.deviation
                more: dict[str, str | float] = {"seeds": found.seeds}
                if case.is_shared_time(name):
                    more[_SHARED] = "†"
                rows.append(CaseValue(case, name, scale * found.mean, deviation, more))
    note = "Means over seeds, and sample standard deviations (sd)."
    shared = any(row.shared for row in rows)
    return CaseValues(rows, f"{note} †: a shared time." if shared else note)


def seed_by_seed(cases: Iterable[CaseResult], quantities: Sequence[str]) -> CaseValues:
    """Return the value of each seed."""
    return CaseValues(
        [
            CaseValue(case, name, display(name).scale * value, more={"seed": seed})
            for case in cases
            for name in quantities
            for seed, value in case.values(name).items()
        ]
    )


def changes(
    bases: Iterable[tuple[CaseResult, CaseResult]],
    quantities: Sequence[str],
    words: str,
    *,
    scale: float = 100.0,
    offset: float = 0.0,
    ratio: bool = False,
) -> CaseValues:
    """Return offset + scale · change of each case from its base, seed by seed; or speed-ups."""
    rows = []
    for case, base in bases:
        for name in quantities:
            found = change_from(base, case, name, ratio=ratio)
            if found is not None:
                deviation = None if found.deviation is None else scale * found.deviation
                value = offset + scale * found.mean
                rows.append(CaseValue(case, name, value, deviation, {"base": base.label}))
    return CaseValues(rows, "Changes are taken seed by seed.", words)


def require_any(found: Collection[Any], what: str) -> None:
    """Raise if nothing was found; `what` is what the chart needs."""
    if not found:
        raise TwoscaleError(f"the record has no {what}")


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
