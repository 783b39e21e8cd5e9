"""The kinds of charts a study can ask for, and how one is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.report.axes import chart_style
from twoscale_lab.report.charts.cases import Chart
from twoscale_lab.report.related import COMMON, chosen_cases
from twoscale_lab.report.results import StudyResult

_MOST = 100  # entries of an option


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart: the function that makes it of a study, and its title.

    Pictures of fields are no `vector` graphics: they are shown as pixels.
    """

    function: Callable[..., Chart]
    title: str
    vector: bool

    @property
    def caption(self) -> str:
        """Return what the chart shows: the first paragraph of the function's docstring."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """Return the options of the function by their names."""
        found = inspect.signature(self.function).parameters
        return {name: one for name, one in found.items() if one.kind is one.KEYWORD_ONLY}


KINDS: dict[str, ChartKind] = {}
"""The kinds by name; `chart_kind` fills it."""

Function = Callable[..., Chart]


def chart_kind(title: str, *, vector: bool = True) -> Callable[[Function], Function]:
    """Return a decorator that makes a function a kind of chart, of its name with dashes."""

    def register(function: Function) -> Function:
        KINDS[function.__name__.replace("_", "-")] = ChartKind(function, title, vector)
        return function

    return register


def draw(kind: str, study: StudyResult, options: Mapping[str, Any]) -> Chart | None:
    """Return the chart of a kind from a study's cases, or None if it has nothing to show.

    Besides the kind's own options, `rows` names the cases by patterns and `where` by properties;
    a `caption` is not drawn: the page shows it.
    """
    chosen = check_kind(kind, options)
    part, own = chosen_cases(study, options)
    if not part.cases:
        return None
    with chart_style():
        return chosen.function(part, **own)


def check_kind(kind: str, options: Mapping[str, Any]) -> ChartKind:
    """Return the kind of that name if it takes these options, else raise."""
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise TwoscaleError(f"no figure is of kind '{kind}'{hint}: known are {', '.join(KINDS)}")
    known = KINDS[kind].options
    if unknown := sorted(set(options) - set(known) - COMMON):
        taken = ", ".join(sorted(set(known) | COMMON))
        raise TwoscaleError(f"figures of kind {kind} take no '{unknown[0]}': they take {taken}")
    for name, option in known.items():
        if option.default is option.empty and name not in options:
            raise TwoscaleError(f"figures of kind {kind} need a {name}")
    if not isinstance(options.get("caption", ""), str):
        raise TwoscaleError("its caption is not a text")
    for name, value in options.items():
        if isinstance(value, list | dict) and len(value) > _MOST:
            raise TwoscaleError(f"its {name} has more than {_MOST} entries")
    return KINDS[kind]
