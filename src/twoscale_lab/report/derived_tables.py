"""Tables of the audits and power laws that a study's figures show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.report.display import ABSENT, display, number
from twoscale.report.page import PageTable, TableCell
from twoscale.report.picture import reporting_errors
from twoscale_lab.report.audits import Audited, study_audits
from twoscale_lab.report.related import (
    QUANTITY,
    Crossing,
    Scaling,
    chosen_cases,
    crossings,
    scalings,
)
from twoscale_lab.report.results import StudyResult
from twoscale_lab.study.definition import Study
from twoscale_lab.study.paper.audit import Audit

_AUDIT_NOTE = (
    "Mean change over the seeds that both cases have, compared seed by seed, with Student's "
    "interval. equivalent: the interval is inside the margin, which was set in advance. different: "
    "it is outside. inconclusive: it crosses the edge of the margin, or there is only one seed. A "
    "speed-up passes above its margin and fails below it; the paper calls a failure inconclusive. "
    "≠: the paper decides otherwise. Times come from other machines and are not judged."
)
_CROSSING_NOTE = (
    "D is the number of nodes per side. A power law time = a·D^b is fitted to the mean times by "
    "least squares. The exponent b has its standard error, except where there are only two grids. "
    "Beyond the crossing, the method on the left takes less time. ‡: extrapolated, outside the "
    "grids on which both were measured. If two exponents differ by less than their errors, the "
    "crossing means nothing."
)
_EXTRAPOLATED = " ‡"
_LARGEST = 1e6  # a larger D is not printed


def derived_tables(study: StudyResult, definition: Study | None) -> list[PageTable]:
    """Return the tables behind a study's equivalence audits and time projections."""
    found = []
    audits = study_audits(study, definition)
    if audits:
        found.append(audit_table(audits))
    for figure in definition.figures if definition else ():
        if figure.kind == "time-projection":
            with suppress(TwoscaleError), reporting_errors(figure.options):
                found += _crossing_tables(study, figure.options)
    return found


def _crossing_tables(study: StudyResult, options: Mapping[str, Any]) -> list[PageTable]:
    """Return the table of a time projection, if any two of its methods can be compared."""
    part, own = chosen_cases(study, options)
    quantity = own.get("quantity", QUANTITY)
    crossing = crossings(scalings(part, quantity=quantity))
    title = f"How the {display(quantity).words} grows, and where two methods cross"
    return [_crossing_table(crossing, title)] if crossing else []


def audit_table(audits: Sequence[Audited]) -> PageTable:
    """Return the table of equivalence audits, one a row."""
    header = ["case", "quantity", "change", "90 % interval", "margin", "seeds"]
    header += ["decision", "paper's decision"]
    rows = [
        [
            one.words,
            display(one.quantity).words,
            number(one.audit.change.estimate, one.audit.margin.kind),
            _interval(one.audit),
            _margin(one.audit),
            str(one.audit.seeds),
            one.audit.decision,
            _paper(one),
        ]
        for one in audits
    ]
    return PageTable(header, rows, title="Equivalence audit", note=_AUDIT_NOTE, words=(0, 1, 6, 7))


def _interval(audit: Audit) -> str:
    bounds = (audit.change.lower, audit.change.upper)
    if None in bounds:
        return ABSENT
    return " to ".join(number(bound, audit.margin.kind) for bound in bounds)


def _margin(audit: Audit) -> str:
    size = number(audit.margin.size, audit.margin.kind).lstrip("+")
    return f"above {size}" if audit.margin.kind == "speed_up" else f"± {size}"


def _paper(one: Audited) -> str:
    if one.paper is None:
        return ABSENT
    return one.paper.decision + (" ≠" if one.is_judged and not one.agrees else "")


def _crossing_table(found: Sequence[Crossing], title: str) -> PageTable:
    several = len({crossing.lower.problem for crossing in found}) > 1
    header = ["grows less", "exponent", "grows more", "exponent", "cross at D"]
    rows: list[list[TableCell | str]] = [
        [
            _name(crossing.lower, several),
            _exponent(crossing.lower),
            _name(crossing.higher, several),
            _exponent(crossing.higher),
            TableCell(_at(crossing), crossing.at),
        ]
        for crossing in found
    ]
    return PageTable(header, rows, title, _CROSSING_NOTE, words=(0, 2))


def _name(scaling: Scaling, several: bool) -> str:
    return f"{scaling.problem.capitalize()}: " * several + scaling.curve.label


def _exponent(scaling: Scaling) -> TableCell:
    law = scaling.law
    error = ", two grids" if law.exponent_error is None else f" ± {law.exponent_error:.3f}"
    return TableCell(f"{law.exponent:.3f}{error}", law.exponent)


def _at(crossing: Crossing) -> str:
    if crossing.at is None:
        return "never"
    words = "below 1" if crossing.at < 1 else f"{crossing.at:,.0f}"
    if crossing.at > _LARGEST:
        words = f"above {_LARGEST:,.0f}"
    return words + _EXTRAPOLATED * crossing.is_extrapolated
