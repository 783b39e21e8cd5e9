"""Agreement of the studies' records with the paper, in sentences and a table."""

from __future__ import annotations

from twoscale.report.display import ABSENT
from twoscale.report.page import PageTable, TableCell
from twoscale_lab.report.audits import same_decisions, study_audits
from twoscale_lab.report.studies import Studies
from twoscale_lab.study.paper.comparison import Tally, agreement, by_study, tally


def agreement_sentences(studies: Studies) -> list[str]:
    """Return how many values agree with the paper, and how many decisions of its audit."""
    return [*_values(studies), *_audits(studies)]


def _values(studies: Studies) -> list[str]:
    counts = tally(studies.compared)
    if counts.agreement is None:
        return []
    words = (
        f"The paper's tables of these studies have {counts.judged + counts.missing:,} values "
        f"besides times. {counts.judged:,} of them were measured here, and {counts.match:,} "
        f"({percent(counts)} %) agree: they differ by at most two of the paper's standard "
        "deviations or 5 %."
    )
    if counts.off:
        explained = counts.off - counts.unexplained
        words += f" The other {counts.off} differ; {explained} of these have an explanation."
    return [words]


def _audits(studies: Studies) -> list[str]:
    """Return a sentence for each study whose equivalence audit the paper has as well."""
    found = []
    for study in studies.results:
        definition = studies.definitions.get(study.name)
        same, judged = same_decisions(study_audits(study, definition))
        if definition and judged:
            found.append(
                f"{definition.title}: {same} of {judged} decisions of the paper's equivalence "
                "audit are the same here. Times are not counted."
            )
    return found


def agreement_table(studies: Studies) -> PageTable:
    """Return the verdicts counted by study."""
    counted = by_study(studies.compared)
    rows = [
        _counts(studies.definitions[study.name].title, counted[study.name])
        for study in studies.results
        if study.name in counted
    ]
    rows.append(_counts("All studies", tally(studies.compared)))
    header = ["study", "agree", "match", "off", "unexplained", "missing", "times"]
    note = (
        "match: at most two of the paper's standard deviations or 5 % apart, whichever is larger. "
        "off: further apart. unexplained: off, and no reason is given. missing: in the paper, not "
        "measured here. times: listed, not judged. For most changes between two cases the paper "
        "prints no standard deviation. We then derive one from the two values as if they were "
        "independent, which makes it too large. Distances in such deviations are marked ~. "
        f"In all: {agreement(studies.compared)}"
    )
    return PageTable(header, rows, "Agreement with the paper, by study", note)


def _counts(name: str, counts: Tally) -> list[TableCell | str]:
    shown = (counts.match, counts.off, counts.unexplained, counts.missing, counts.times)
    agree = ABSENT if counts.agreement is None else f"{percent(counts)} %"
    numbers = (TableCell(f"{value:,}", value) for value in shown)
    return [name, TableCell(agree, counts.agreement), *numbers]


def percent(counts: Tally) -> str:
    """Return the share of what is judged that matches."""
    return f"{100 * (counts.agreement or 0.0):.0f}"
