"""Tables of the leaderboard: errors that others published, and ours as measured."""

from __future__ import annotations

from collections.abc import Sequence

from twoscale.report.page import PageTable
from twoscale_lab.report.results import StudyResult
from twoscale_lab.study.leaderboard.published import STUDY
from twoscale_lab.study.leaderboard.standings import (
    HEADINGS,
    NOTE,
    Standing,
    standings_of,
    summary,
    table_rows,
)


def standing_tables(study: StudyResult) -> list[PageTable]:
    """Return the tables of where we stand, if a study is the leaderboard at the paper's scale."""
    if study.name != STUDY or study.scale != "paper":
        return []
    return [standings_table(standings_of(cell for case in study.cases for cell in case.cells))]


def standings_table(found: Sequence[Standing]) -> PageTable:
    """Return the best published errors, those of FNO, and the best of ours."""
    return PageTable(
        HEADINGS,
        table_rows(found),
        title="Where we stand, errors in %",
        note=f"{summary(found)} {NOTE} {' '.join(caveats(found))}".strip(),
        words=(0, 1, 2, 3, 5),
    )


def published_table(found: Sequence[Standing]) -> PageTable:
    """Return all published errors with the names of their sources."""
    rows = []
    for benchmark in (one.benchmark for one in found):
        texts = [f"{one.method} {one.percent} [{one.source}]" for one in benchmark.published]
        rows.append([benchmark.name, benchmark.measure, ", ".join(texts)])
    header = ("benchmark", "error", "published by others, %")
    return PageTable(header, rows, words=(0, 1, 2))


def caveats(found: Sequence[Standing]) -> list[str]:
    """Return what is uncertain about published errors, in sentences."""
    return [f"{one.benchmark.name}: {text}." for one in found for text in one.benchmark.caveats]
