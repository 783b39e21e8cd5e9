"""The report of studies: summary, tables, figures and the origin of each number on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.report.display import ABSENT, display, number, with_spread
from twoscale.report.figure_folder import check_page, write_with_figures
from twoscale.report.page import ChartTable, PageTable, Picture, Section, TableCell, page_text
from twoscale.report.picture import reporting_errors
from twoscale_lab.report.agreement import agreement_table
from twoscale_lab.report.best_result import best_result
from twoscale_lab.report.charts import KINDS, Chart, draw, error_time_chart
from twoscale_lab.report.charts.error_time import error_time_cases, main_places
from twoscale_lab.report.derived_tables import derived_tables
from twoscale_lab.report.results import CaseResult, StudyResult
from twoscale_lab.report.standings import standing_tables
from twoscale_lab.report.studies import Studies, read_studies
from twoscale_lab.report.study_tables import (
    SHARED_NOTE,
    UNSHARED_NOTE,
    StudyTable,
    Value,
    compared_title,
    study_tables,
)
from twoscale_lab.report.summary import sentences, tiles
from twoscale_lab.study.definition import Figure as Asked
from twoscale_lab.study.paper.comparison import Row as Compared
from twoscale_lab.study.quantities import is_time

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
    off = [row for row in studies.compared if row.verdict == "off"]
    off.sort(key=lambda row: row.explanation is not None)  # unexplained ones come first
    tables = [agreement_table(studies)]
    if off:
        tables.append(compared_table(off, "Values that differ from the paper, and why"))
    return Section(
        "Comparison with the paper",
        "Does each value of the paper's tables agree with the same quantity measured here?",
        tables=tables,
        fold=True,
        anchor="paper",
    )


def _study_section(study: StudyResult, studies: Studies) -> Section:
    definition = studies.definitions.get(study.name)
    compared = [row for row in studies.compared if row.study == study.name]
    asked = study_tables(study, definition, compared)
    columns = dict.fromkeys(name for table in asked for name in table.columns)
    origins = _origins(study, list(columns))
    tables = [*standing_tables(study), *(_table(table, origins) for table in asked)]
    note = _NOTE + (_PAPER_NOTE if compared else "")
    tables[-1:] = [replace(table, note=note) for table in tables[-1:]]
    tables += derived_tables(study, definition)
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
        definition.title if definition else study.name,
        definition.question if definition else "",
        facts=facts(study),
        tables=tables,
        pictures=pictures,
        remarks=remarks,
        folded=[compared_table(seen, f"All {len(seen)} values of the paper, with ours")]
        if seen
        else [],
        fold=True,
        anchor=study.name,
    )


def facts(study: StudyResult) -> list[tuple[str, str]]:
    """Return the origin of a study's numbers: record, runs, devices, commits, command."""
    devices, commits = (
        sorted({_where(study, k)[part] for k in range(len(study.environments))}) for part in (1, 0)
    )
    found = [
        ("Record", study.record.name),
        ("Runs", f"{study.cells}, of {len(study.cases)} cases"),
        ("Device", ", ".join(devices)),
        ("Commit", ", ".join(commits)),
        ("Command", study.command),
    ]
    return [(name, words) for name, words in found if words]


def _pictures(study: StudyResult, asked: Sequence[Asked]) -> tuple[list[Picture], list[str]]:
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


def _picture(study: StudyResult, asked: Asked, title: str, name: str) -> Picture | None:
    """Return a rendered figure; None if none of its cases was run."""
    chart = draw(asked.kind, study, asked.options)
    if chart is None:
        return None
    kind = KINDS[asked.kind]
    caption = asked.options.get("caption", kind.caption)
    return _rendered(chart, name, title, caption, vector=kind.vector)


def _table(table: StudyTable, origins: Mapping[str, ChartTable]) -> PageTable:
    several = len(table.places) > 1
    header = ["case", *(["grid"] if several else [])]
    header += [*(display(name).heading for name in table.columns), "seeds"]
    rows = []
    for row in table.rows:
        cells: list[TableCell | str] = [row.label]
        if several:
            cells.append(row.place)
        cells += [_cell(value) for value in row.values]
        cells.append(TableCell(str(row.seeds) if row.seeds else ABSENT, row.seeds))
        rows.append(cells)
    title = table.title
    if len(table.places) == 1 and table.places[0] not in title:
        title += f" ({table.places[0]})"
    words = (0, 1) if several else (0,)
    sources = [origins.get(row.id) for row in table.rows]
    return PageTable(header, rows, title, words=words, origins=sources)


def _cell(value: Value) -> TableCell:
    kind = display(value.name).kind
    ours, paper = value.ours, value.paper
    text = with_spread(ours.mean, ours.deviation, kind) + value.mark if ours else ABSENT
    mean = ours.mean if ours else None
    if paper is None:
        return TableCell(text, mean)
    apart = paper.difference_in_sd
    return TableCell(
        text,
        mean,
        paper=with_spread(paper.paper, paper.paper_sd, kind),
        verdict=paper.verdict or "",
        note="" if apart is None else f"{apart:+.1f} of the paper's standard deviations apart",
    )


def _origins(study: StudyResult, columns: Sequence[str]) -> dict[str, ChartTable]:
    """Return the origin of each case's numbers, one line per seed."""
    found = {}
    for case in study.cases:
        shown = [name for name in columns if case.values(name)]
        header = ["seed", *(display(name).heading for name in shown)]
        header += ["cell", "config", "commit", "device"]
        rows = [
            [
                str(cell["seed"]),
                *(_one(case, name, cell["seed"]) for name in shown),
                str(cell.get("key", ABSENT)),
                str(cell.get("config_hash", ABSENT)),
                *_where(study, cell.get("environment")),
            ]
            for cell in case.cells
        ]
        found[case.id] = ChartTable(header, rows, f"{study.record.name}: {case.id}")
    return found


def _one(case: CaseResult, name: str, seed: int) -> str:
    return number(case.values(name).get(seed), display(name).kind)


def _where(study: StudyResult, index: object) -> list[str]:
    if not isinstance(index, int) or not 0 <= index < len(study.environments):
        return [ABSENT, ABSENT]
    environment = study.environments[index]
    return [
        str(environment.get("commit") or ABSENT),
        str(environment.get("device_name") or environment.get("device") or ABSENT),
    ]


def compared_table(rows: Sequence[Compared], title: str) -> PageTable:
    """Return values of the paper beside ours, one a row, with the reason where they differ."""
    header = ["case", "quantity", "paper", "ours", "why", "difference, sd"]
    header += ["verdict", "paper's table"]
    return PageTable(
        header,
        [
            [
                compared_title(row.cell),
                display(row.metric).heading,
                TableCell(_written(row, row.paper, row.paper_sd), row.paper),
                TableCell(_written(row, row.ours, row.ours_sd), row.ours),
                row.explanation or "",
                TableCell(_apart(row), row.difference_in_sd),
                TableCell(row.verdict or "not judged", verdict=row.verdict or ""),
                row.table,
            ]
            for row in rows
        ],
        title,
        words=(0, 1, 4, 7),
    )


def _written(row: Compared, mean: float | None, deviation: float | None) -> str:
    """Return a value of a comparison; changes are percentages, speed-ups and others plain."""
    if not row.is_change:
        return with_spread(mean, deviation, display(row.metric).kind)
    if is_time(row.metric) or row.metric == "ssim":
        return with_spread(mean, deviation, "short")
    return number(mean, "relative")


def _apart(row: Compared) -> str:
    if row.difference_in_sd is None:
        return ABSENT
    return f"{'~ ' if row.sd_derived else ''}{row.difference_in_sd:+.1f}"


def _footer(studies: Studies) -> str:
    versions = sorted(
        {str(one.get("twoscale")) for study in studies.results for one in study.environments}
    )
    return (
        f"Made by twoscale {', '.join(versions)} from {len(studies.results)} records "
        f"in {studies.folder.name}. The page needs no network."
    )
