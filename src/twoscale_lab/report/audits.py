"""Equivalence audits of a study: paired changes against margins, and the paper's decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.methods.settings import setting_text
from twoscale.report.display import ABSENT, display, number
from twoscale.report.page import PageTable
from twoscale.report.picture import reporting_errors
from twoscale_lab.report.related import chosen_cases, with_base
from twoscale_lab.report.results import CaseResult, StudyResult
from twoscale_lab.study.definition import Study
from twoscale_lab.study.paper.audit import MARGINS, Audit, audit, read_margins
from twoscale_lab.study.paper.published import PaperAudit, paper_tables
from twoscale_lab.study.quantities import is_time

QUANTITIES = ("mre", "oracle_mre", "ssim")
"""What is audited by default."""


@dataclass(frozen=True)
class Audited:
    """The change of a quantity from a base to a case, in our audit and in the paper's."""

    case: CaseResult
    base: CaseResult
    words: str
    quantity: str
    audit: Audit
    paper: PaperAudit | None

    @property
    def is_judged(self) -> bool:
        """Say whether the paper decides on it too. Times come from other machines: not judged."""
        return self.paper is not None and not is_time(self.quantity)

    @property
    def agrees(self) -> bool:
        """Say whether the paper's decision is the same."""
        return self.paper is not None and self.paper.decision == self.audit.decision


def audited(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = QUANTITIES,
    margins: Mapping[str, Any] | None = None,
) -> list[Audited]:
    """Return the audit of each case that has its base, of each quantity that has a margin."""
    known = read_margins(MARGINS if margins is None else margins)
    paper = _paper_audits(study.name)
    found = []
    for case, start in with_base(study, base):
        for name in quantities:
            values = case.values(name), start.values(name)
            if name in known and (one := audit(*values, known[name])) is not None:
                decided = paper.get((case.id, start.id, name))
                found.append(Audited(case, start, _words(case, start, base), name, one, decided))
    return found


def study_audits(study: StudyResult, definition: Study | None) -> list[Audited]:
    """Return all audits that the figures of a study show, case by case.

    A figure with wrong options has none; the page names it in a remark.
    """
    found: list[Audited] = []
    for figure in definition.figures if definition else ():
        if figure.kind == "equivalence":
            with suppress(TwoscaleError), reporting_errors(figure.options):
                part, options = chosen_cases(study, figure.options)
                found += audited(part, **options)
    comparisons = list(dict.fromkeys(one.words for one in found))
    return sorted(found, key=lambda one: comparisons.index(one.words))


def same_decisions(audits: Iterable[Audited]) -> tuple[int, int]:
    """Return how many of the paper's decisions are the same here, and how many there are."""
    judged = [one.agrees for one in audits if one.is_judged]
    return sum(judged), len(judged)


def _paper_audits(study: str) -> dict[tuple[str, str, str], PaperAudit]:
    """Return what the paper's audits say, by case, base and quantity."""
    return {
        (cell.case, cell.against, name): decided
        for table in paper_tables().values()
        if table.study == study
        for cell in table.cells
        if cell.against is not None
        for name, decided in cell.audit.items()
    }


def _words(case: CaseResult, base: CaseResult, changes: Mapping[str, Any]) -> str:
    """Return the comparison in words: `Two-scale: randomized against full`."""
    method = case.label.split(",")[0]
    own, other = (
        " ".join(setting_text(one.settings.get(name.split(".")[-1])) for name in changes)
        for one in (case, base)
    )
    return f"{method}: {own} against {other}"


_AUDIT_NOTE = (
    "Mean change over the seeds that both cases have, compared seed by seed, with Student's "
    "interval. equivalent: the interval is inside the margin, which was set in advance. different: "
    "it is outside. inconclusive: it crosses the edge of the margin, or there is only one seed. A "
    "speed-up passes above its margin and fails below it; the paper calls a failure inconclusive. "
    "≠: the paper decides otherwise. Times come from other machines and are not judged."
)


def audit_tables(study: StudyResult, definition: Study | None) -> list[PageTable]:
    """Return the table of the equivalence audits that a study's figures show, if there are any."""
    audits = study_audits(study, definition)
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
    table = PageTable(header, rows, "Equivalence audit", _AUDIT_NOTE, words=(0, 1, 6, 7))
    return [table] if audits else []


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
