"""The report of studies: summary, tables, figures and the origin of each number on one page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.report.figure_folder import check_page, write_with_figures
from twoscale.report.page import PageTable, Picture, Section, page_text
from twoscale.report.picture import reporting_errors
from twoscale_lab.report.audits import audit_tables
from twoscale_lab.report.charts import KINDS, Chart, draw, error_time_chart
from twoscale_lab.report.charts.error_time import error_time_cases, main_places
from twoscale_lab.report.related import crossing_tables
from twoscale_lab.report.results import Studies, StudyResult, read_studies
from twoscale_lab.report.summary import best_result, sentences, tiles
from twoscale_lab.report.tables import (
    SHARED_NOTE,
    UNSHARED_NOTE,
    agreement_table,
    compared_table,
    standing_tables,
    study_tables,
)
from twoscale_lab.study.definition import StudyFigure

TITLE = "Two-scale localised PCA-Net: our measurements and the paper's"
_NOTE = (
    "Numbers are mean ± sample standard deviation over seeds. Click the name of a row to see its "
    "seeds and where they come from."
)
_PAPER_NOTE = (
    " The paper's number stands below ours. ✓: at most two of its standard deviations or 5 % "
    "apart. ≠: further apart. Times come from other machines and are not judged."
)
_FIRST_CAPTION = (
    "Each point is a method on one problem: relative error against total time. Both axes are "
    "logarithmic, and lower left is better. Markers with a + are our predictors beyond the paper. "
    "The dashed line joins the best trade-offs: no other point is better in both."
)


def write_report(folder: Path, out: Path | None = None, *, overwrite: bool = False) -> Path:
    """Write the report of all records in a study folder; return its path.

    `report.html` needs no other file; every figure is also written to `figures/` beside it, as PNG
    and SVG. An existing page and its figures are replaced only with `overwrite`.
    """
    page = folder / "report.html" if out is None else out
    check_page(page, overwrite=overwrite)
    studies = read_studies(folder)
    sections = [_study_section(study, studies) for study in studies.results]
    first = _first_picture(studies)
    pictures = [picture for section in sections for picture in section.pictures]
    if first is not None:
        pictures.insert(0, first)
    if studies.compared:
        sections.insert(0, _paper_section(studies))
    text = page_text(
        title=TITLE,
        best=best_result(studies),
        first=first,
        summary=[*sentences(studies), UNSHARED_NOTE],
        tiles=tiles(studies),
        sections=sections,
        footer=_footer(studies),
    )
    write_with_figures(page, text, pictures, kinds=("png", "svg"), overwrite=overwrite)
    return page


def _first_picture(studies: Studies) -> Picture | None:
    """Return the picture of error against time; None if no problem was solved by three methods."""
    if not main_places(error_time_cases(studies.results)):
        return None
    with suppress(TwoscaleError), reporting_errors({}):
        chart, narrow = (error_time_chart(studies.results, columns=k) for k in (2, 1))
        return _rendered(
            chart, "error-time", "Error against time", _FIRST_CAPTION, narrow=narrow.figure
        )
    return None


def _rendered(chart: Chart, name: str, title: str, caption: str, **options: Any) -> Picture:
    """Return a chart as a picture with its numbers; it is drawn now, so that errors come early."""
    options = {"vector": True, "table": chart.values.table, **options}
    picture = Picture(name, title, caption, chart.figure, **options)
    picture.render()
    return picture


def _paper_section(studies: Studies) -> Section:
    tables = [agreement_table(studies)]
    if off := studies.differing:
        tables.append(compared_table(off, "Values that differ from the paper, and why"))
    return Section(
        "Comparison with the paper",
        "Does each value of the paper's tables agree with the same quantity measured here?",
        tables=tables,
        fold=True,
        anchor="paper",
    )


def all_tables(study: StudyResult, studies: Studies) -> list[PageTable]:
    """Return every table of a study: its standing, its cases, what its figures derive."""
    definition = studies.definitions.get(study.name)
    own = study_tables(study, definition, studies.compared)
    derived = [*audit_tables(study, definition), *crossing_tables(study, definition)]
    return [*standing_tables(study), *own, *derived]


def _study_section(study: StudyResult, studies: Studies) -> Section:
    definition = studies.definitions.get(study.name)
    compared = [row for row in studies.compared if row.study == study.name]
    pictures, remarks = _pictures(study, definition.figures if definition else [])
    if any(case.is_shared_time("total") for case in study.cases):
        remarks.insert(0, SHARED_NOTE)
    if study.scale != "paper":
        remarks.insert(
            0, "This study ran at a small scale. Its numbers are not comparable to the paper."
        )
    remarks += [
        f"Failed: {cell['case']}, seed {cell['seed']}: {cell['error']}" for cell in study.failed
    ]
    seen = [row for row in compared if row.ours is not None]
    return Section(
        studies.title(study),
        studies.question(study),
        facts=study.facts,
        tables=all_tables(study, studies),
        pictures=pictures,
        remarks=[*remarks, _NOTE + (_PAPER_NOTE if compared else "")],
        folded=[compared_table(seen, f"All {len(seen)} values of the paper, with ours")]
        if seen
        else [],
        fold=True,
        anchor=study.name,
    )


def _pictures(study: StudyResult, asked: Sequence[StudyFigure]) -> tuple[list[Picture], list[str]]:
    """Return the figures of a study's definition, and a remark for each that cannot be drawn."""
    pictures, remarks = [], []
    for position, one in enumerate(asked, 1):
        title = one.title or KINDS[one.kind].title if one.kind in KINDS else one.kind
        try:
            with reporting_errors(one.options):
                picture = _picture(study, one, title, f"{study.name}-{position}-{one.kind}")
        except TwoscaleError as error:
            remarks.append(f"Not drawn: {title} ({error}).")
            continue
        if picture is None:
            remarks.append(f"Not drawn: {title} (none of its cases has been run).")
            continue
        pictures.append(picture)
    return pictures, remarks


def _picture(study: StudyResult, asked: StudyFigure, title: str, name: str) -> Picture | None:
    """Return a rendered figure; None if none of its cases was run."""
    chart = draw(asked.kind, study, asked.options)
    if chart is None:
        return None
    kind = KINDS[asked.kind]
    caption = asked.options.get("caption", kind.caption)
    return _rendered(chart, name, title, caption, vector=kind.vector)


def _footer(studies: Studies) -> str:
    versions = sorted(
        {str(one.get("twoscale")) for study in studies.results for one in study.environments}
    )
    return (
        f"Made by twoscale {', '.join(versions)} from {len(studies.results)} records "
        f"in {studies.folder.name}. The page needs no network."
    )
