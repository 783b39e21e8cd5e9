"""The tables of studies as Markdown: for the documentation and the README."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from twoscale.report.display import ABSENT, display, with_spread
from twoscale.report.page import PageTable
from twoscale_lab.report.agreement import agreement_table
from twoscale_lab.report.derived_tables import derived_tables
from twoscale_lab.report.results import StudyResult, place_title
from twoscale_lab.report.standings import published_table, standing_tables, standings_table
from twoscale_lab.report.studies import Studies, make_studies, read_studies, record_files
from twoscale_lab.report.study_page import compared_table, facts
from twoscale_lab.report.study_tables import (
    SHARED_NOTE,
    UNSHARED_NOTE,
    StudyTable,
    Value,
    measured,
    paper_values,
    study_tables,
)
from twoscale_lab.report.summary import sentences
from twoscale_lab.study.folder import read_record
from twoscale_lab.study.leaderboard.published import STUDY, leaderboard
from twoscale_lab.study.leaderboard.standings import standings

_MARKS = {"match": " ✓", "off": " ≠"}
_HEAD = (
    """# Results

This page has every table of every study. The paper's number stands beside ours where the paper
has one. `make documents` makes the page from the records under `results/study`. The records
name the settings, the commit and the device of each run. `twoscale study report results/study`
makes a page with the figures from the same records.

Numbers are mean ± sample standard deviation over seeds. ✓: at most two of the paper's standard
deviations or 5 % apart, whichever is larger. ≠: further apart. Times come from other machines and
are not judged.
"""
    + f"{UNSHARED_NOTE}\n{SHARED_NOTE}\n"
)
# The columns of the main table, and those with a spread and with the paper's number.
_HEADLINE = (
    "mre",
    "oracle_mre",
    "ssim",
    "value_trace_error",
    "normal_derivative_trace_error",
    "residual_rms",
    "total",
)
_SPREAD = ("mre", "oracle_mre")
_BESIDE = ("mre",)
_SHOWN = ("headline", "darcy")
_SEAM_COLUMNS = (
    "The paper's main methods. Seam columns are the mean errors of the jump in value and in normal "
    "derivative across each method's own patch borders; the residual is the RMS of the discrete "
    "PDE residual."
)
NO_RECORDS = "There are no records yet."


def results_page(folder: Path) -> str:
    """Return `docs/results.md` from a folder of records, which may be empty."""
    if not record_files(folder):
        return f"{_HEAD}\n{NO_RECORDS}\n"
    studies = read_studies(folder)
    parts = [_HEAD, "## In short", "", *_summary(studies)]
    for study in studies.results:
        parts += _study(study, studies)
    return "\n".join(parts).rstrip() + "\n"


def _summary(studies: Studies) -> list[str]:
    lines = [f"- {sentence}" for sentence in sentences(studies)]
    shown = headline_table(studies.folder)
    if shown != NO_RECORDS:
        lines += ["", _SEAM_COLUMNS, "", shown]
    if not studies.compared:
        return [*lines, ""]
    table = agreement_table(studies)
    lines += ["", "## Comparison with the paper", "", *_plain(table), "", table.note, ""]
    off = [row for row in studies.compared if row.verdict == "off"]
    if off:
        lines += ["The values that differ, and why:", "", *_plain(compared_table(off, "")), ""]
    return lines


def _study(study: StudyResult, studies: Studies) -> list[str]:
    definition = studies.definitions.get(study.name)
    lines = [f"## {definition.title if definition else study.name}", ""]
    if definition:
        lines += [definition.question.strip(), ""]
    lines += ["; ".join(f"{name.lower()}: {words}" for name, words in facts(study)) + ".", ""]
    for standing in standing_tables(study):
        lines += [f"**{standing.title}**", "", *_plain(standing), "", standing.note, ""]
    for table in study_tables(study, definition, studies.compared):
        lines += [f"**{table.title}**", "", *_table(table), ""]
    for derived in derived_tables(study, definition):
        lines += [f"**{derived.title}**", "", *_plain(derived), "", derived.note, ""]
    if study.failed:
        lines += [
            f"- failed: {one['case']}, seed {one['seed']}: {one['error']}" for one in study.failed
        ]
        lines.append("")
    return lines


def leaderboard_text(folder: Path) -> str:
    """Return the leaderboard as Markdown, from a folder of records that may lack its cells."""
    files = [path for path in record_files(folder) if path.stem == STUDY]
    found = standings([read_record(path) for path in files])
    where, all_published = standings_table(found), published_table(found)
    sources = [f"- [{name}] {one.words}." for name, one in leaderboard().sources.items()]
    parts = [
        [f"**{where.title}**", "", *_plain(where)],
        [where.note],
        ["**All published errors**", "", *_plain(all_published)],
        sources,
    ]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _plain(table: PageTable) -> list[str]:
    """Return a table of the page as Markdown."""
    return markdown(table.header, table.texts)


def _table(table: StudyTable) -> list[str]:
    beside = [any(row.values[k].paper for row in table.rows) for k in range(len(table.columns))]
    header = ["", "grid", "seeds", *_headings(table.columns, beside)]
    rows = [
        [row.label, row.place, str(row.seeds or ABSENT), *_cells(row.values, beside)]
        for row in table.rows
    ]
    return markdown(header, rows)


def _headings(names: Sequence[str], beside: Sequence[bool]) -> list[str]:
    headings: list[str] = []
    for name, paper in zip(names, beside, strict=True):
        headings += [display(name).heading, *(["paper"] if paper else [])]
    return headings


def _cells(values: Sequence[Value], beside: Sequence[bool]) -> list[str]:
    cells: list[str] = []
    for value, paper in zip(values, beside, strict=True):
        cells += [_ours(value), *([_paper(value)] if paper else [])]
    return cells


def _ours(value: Value) -> str:
    if value.ours is None:
        return ABSENT
    text = with_spread(value.ours.mean, value.ours.deviation, display(value.name).kind)
    return text + value.mark


def _paper(value: Value) -> str:
    if value.paper is None:
        return ""
    text = with_spread(value.paper.paper, value.paper.paper_sd, display(value.name).kind)
    return text + _MARKS.get(value.paper.verdict or "", "")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def headline_table(folder: Path) -> str:
    """Return the table of the main methods, from the records of the headline studies."""
    paths = [path for path in record_files(folder) if path.stem in _SHOWN]
    if not paths:
        return NO_RECORDS
    studies = make_studies(folder, {path: read_record(path) for path in paths})
    beside = [name in _BESIDE for name in _HEADLINE]
    rows: list[list[str]] = []
    for study in studies.results:
        paper = paper_values(row for row in studies.compared if row.study == study.name)
        for place, cases in study.places.items():
            rows.append([f"**{place_title(place)}**"])
            for case in cases:
                values = [_short(measured(case, k, paper.get((case.id, k)))) for k in _HEADLINE]
                rows.append([case.label, *_cells(values, beside), str(len(case.cells))])
    header = ["", *_headings(_HEADLINE, beside), "seeds"]
    return "\n".join(markdown(header, [row + [""] * (len(header) - len(row)) for row in rows]))


def beyond_table(folder: Path, title: str) -> str:
    """Return a table of the study beyond the paper, without the cases that were not measured."""
    path = folder / "beyond.json"
    if not path.is_file():
        return NO_RECORDS
    studies = make_studies(folder, {path: read_record(path)})
    (study,) = studies.results
    tables = study_tables(study, studies.definitions.get(study.name))
    table = next(table for table in tables if table.title == title)
    rows = tuple(
        replace(row, values=tuple(map(_short, row.values))) for row in table.rows if row.seeds
    )
    return "\n".join(_table(replace(table, rows=rows)))


def _short(value: Value) -> Value:
    """Return a value without its deviation where the table would be too wide."""
    if value.ours is None or value.name in _SPREAD:
        return value
    return replace(value, ours=replace(value.ours, deviation=None))
