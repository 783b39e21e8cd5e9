"""The tables of studies: our values with their spread, the paper's beside them, and verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from twoscale.report.display import ABSENT, display, number, with_spread
from twoscale.report.method_looks import method_title
from twoscale.report.page import ChartTable, PageTable, TableCell
from twoscale_lab.report.results import (
    SCHEDULE,
    CaseResult,
    Studies,
    StudyResult,
    place_title,
)
from twoscale_lab.study.definition import Study, StudyTable
from twoscale_lab.study.leaderboard.board import (
    HEADINGS,
    NOTE,
    STUDY,
    Standing,
    standings_of,
    summary,
    table_rows,
)
from twoscale_lab.study.paper.comparison import ComparedValue, Tally, agreement, by_study, tally
from twoscale_lab.study.quantities import is_time

UNSHARED_NOTE = (
    "Times with training come from the seed that was trained alone on the device, if there is one."
)
SHARED_NOTE = (
    "†: a shared time. Several networks were trained at once, or the device did other work. Do not "
    "compare it with times without this mark."
)

_DEFAULT_COLUMNS = ("mre", "oracle_mre", "ssim", "residual_rms", "output_code", "total")
_MARKS = {"match": " ✓", "off": " ≠"}

PaperValues = Mapping[tuple[str, str], ComparedValue]
"""The paper's values by case and quantity."""


def study_tables(
    study: StudyResult, definition: Study | None, compared: Iterable[ComparedValue] = ()
) -> list[PageTable]:
    """Return the tables of a study's definition, or one with default columns.

    Rows are sorted by problem and grid. A case that has not been run has an empty row. Where the
    paper prints a value several times, the one with a standard deviation is shown.
    """
    paper = paper_values(row for row in compared if row.study == study.name)
    names = {row.case.id: row.label for row in definition.rows()} if definition else {}
    ids = dict.fromkeys([*names, *(case.id for case in study.cases)])
    places = list(dict.fromkeys(map(_place, ids)))
    ordered = sorted(ids, key=lambda name: places.index(_place(name)))
    asked = list(definition.tables) if definition else []
    if not asked:
        asked = [StudyTable(name="cases", title="All cases", columns=list(_DEFAULT_COLUMNS))]
    columns = dict.fromkeys(name for table in asked for name in table.columns)
    origins = {case.id: _origin(study, case, columns) for case in study.cases}
    tables = []
    for table in asked:
        rows = {
            name: names.get(name) or case_title(name)
            for name in ordered
            if any(fnmatchcase(name, pattern) for pattern in table.rows)
        }
        made = case_table(table.title, rows, study.cases, table.columns, paper)
        tables.append(replace(made, origins=[origins.get(name) for name in rows]))
    return tables


def case_table(
    title: str,
    rows: Mapping[str, str],
    cases: Iterable[CaseResult],
    columns: Sequence[str],
    paper: PaperValues,
    *,
    spread: Collection[str] | None = None,
) -> PageTable:
    """Return a table with a row per case: the ids of the cases with their names.

    `spread` are the quantities that have their deviation, by default all.
    """
    known = {case.id: case for case in cases}
    places = list(dict.fromkeys(place_title(_place(name)) for name in rows))
    several = len(places) > 1
    lines: list[list[TableCell | str]] = []
    for name, label in rows.items():
        case = known.get(name)
        seeds = len(case.cells) if case else 0
        values = [
            _value_cell(case, column, paper.get((name, column)), spread is None or column in spread)
            for column in columns
        ]
        place = [place_title(_place(name))] if several else []
        end = TableCell(str(seeds or ABSENT), seeds)
        lines.append([case.label if case else label, *place, *values, end])
    if len(places) == 1 and places[0] not in title:
        title += f" ({places[0]})"
    header = ["case", *(["grid"] if several else [])]
    header += [*(display(name).heading for name in columns), "seeds"]
    return PageTable(header, lines, title, words=(0, 1) if several else (0,))


def _value_cell(
    case: CaseResult | None, name: str, paper: ComparedValue | None, spread: bool
) -> TableCell:
    """Return a quantity of a case, which may not have been run, with the paper's number."""
    text = ABSENT if case is None else case.text(name, spread=spread)
    mean = None if case is None else case.mean(name)
    if paper is None:
        return TableCell(text, mean)
    apart = paper.difference_in_sd
    return TableCell(
        text,
        mean,
        paper=with_spread(paper.paper, paper.paper_sd, display(name).kind),
        verdict=paper.verdict or "",
        note="" if apart is None else f"{apart:+.1f} of the paper's standard deviations apart",
    )


def _place(case: str) -> str:
    return case.partition(" ")[0]


def _origin(study: StudyResult, case: CaseResult, columns: Iterable[str]) -> ChartTable:
    """Return where a case's numbers are from, one line per seed."""
    shown = {name: case.values(name) for name in columns}
    shown = {name: values for name, values in shown.items() if values}
    rows = [
        [
            str(cell["seed"]),
            *(number(own.get(cell["seed"]), display(k).kind) for k, own in shown.items()),
            str(cell.get("key", ABSENT)),
            str(cell.get("config_hash", ABSENT)),
            *study.where_run(cell.get("environment")),
        ]
        for cell in case.cells
    ]
    header = ["seed", *(display(name).heading for name in shown)]
    header += ["cell", "config", "commit", "device"]
    return ChartTable(header, rows, f"{study.record.name}: {case.id}")


def paper_values(rows: Iterable[ComparedValue]) -> dict[tuple[str, str], ComparedValue]:
    """Return the paper's values by case and quantity."""
    found: dict[tuple[str, str], ComparedValue] = {}
    for row in rows:
        known = found.get((row.cell, row.metric))
        if known is None or (known.paper_sd is None and row.paper_sd is not None):
            found[row.cell, row.metric] = row
    return found


def case_title(case: str) -> str:
    """Return the name of a case that has not been run.

    >>> case_title("poisson-128 two-scale+A3 training=1250")
    'Two-scale + A3, training=1250'
    >>> case_title("darcy-256 fno batch_size=4")
    'FNO'
    """
    _, method, *settings = case.split(" ")
    rest = [one for one in settings if one.partition("=")[0] not in SCHEDULE]
    method, plus, objective = method.partition("+")
    title = method_title(method)
    return ", ".join([f"{title} + {objective}" if plus else title, *rest])


def compared_title(cell: str) -> str:
    """Return the name of a case, or of two cases, that is compared with the paper.

    >>> compared_title("darcy-256 two-scale+A3 against darcy-256 two-scale")
    'Darcy 256²: Two-scale + A3 against Two-scale'
    """
    cases = cell.split(" against ")
    places = [place_title(case.partition(" ")[0]) for case in cases]
    names = [case_title(case).replace("_", " ").replace("=", " ") for case in cases]
    if len(set(places)) > 1:
        return " against ".join(
            f"{place}: {name}" for place, name in zip(places, names, strict=True)
        )
    return f"{places[0]}: {' against '.join(names)}"


def compared_table(rows: Sequence[ComparedValue], title: str) -> PageTable:
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


def _written(row: ComparedValue, mean: float | None, deviation: float | None) -> str:
    """Return a value of a comparison; changes are percentages, speed-ups and others plain."""
    if not row.is_change:
        return with_spread(mean, deviation, display(row.metric).kind)
    if is_time(row.metric) or row.metric == "ssim":
        return with_spread(mean, deviation, "short")
    return number(mean, "relative")


def _apart(row: ComparedValue) -> str:
    if row.difference_in_sd is None:
        return ABSENT
    return f"{'~ ' if row.sd_derived else ''}{row.difference_in_sd:+.1f}"


def agreement_table(studies: Studies) -> PageTable:
    """Return the verdicts counted by study."""
    counted = by_study(studies.compared)
    rows = [
        _counts(studies.title(study), counted[study.name])
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


def standing_tables(study: StudyResult) -> list[PageTable]:
    """Return the tables of where we stand, if a study is the leaderboard at the paper's scale."""
    if study.name != STUDY or study.scale != "paper":
        return []
    return [standings_table(standings_of(study.cells))]


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


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def markdown_table(table: PageTable) -> str:
    """Return a page's table as Markdown; the paper's numbers get columns of their own."""
    rows = table.cells
    beside = [any(row[k].paper for row in rows) for k in range(len(table.header))]
    header: list[str] = []
    for heading, paper in zip(table.header, beside, strict=True):
        header += [heading, "paper"] if paper else [heading]
    lines: list[list[str]] = []
    for row in rows:
        line: list[str] = []
        for cell, paper in zip(row, beside, strict=True):
            theirs = cell.paper and cell.paper + _MARKS.get(cell.verdict, "")
            line += [cell.text, theirs] if paper else [cell.text]
        lines.append(line)
    return markdown(header, lines)
