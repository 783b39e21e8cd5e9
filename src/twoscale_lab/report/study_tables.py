"""The tables of a study: our value with its spread, the paper's value, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from twoscale.report.method_looks import method_title
from twoscale_lab.report.results import SCHEDULE, CaseResult, StudyResult, place_title
from twoscale_lab.study.definition import Study
from twoscale_lab.study.definition import Table as Asked
from twoscale_lab.study.paper.comparison import Row as Compared
from twoscale_lab.study.statistics import Spread

UNSHARED_NOTE = (
    "Times with training come from the seed that was trained alone on the device, if there is one."
)
SHARED_NOTE = (
    "†: a shared time. Several networks were trained at once, or the device did other work. Do not "
    "compare it with times without this mark."
)

_DEFAULT_COLUMNS = ("mre", "oracle_mre", "ssim", "residual_rms", "output_code", "total")


@dataclass(frozen=True)
class Value:
    """A quantity of a case: our value and the paper's, None where there is none."""

    name: str
    ours: Spread | None
    paper: Compared | None
    share: bool = False  # a time that the case did not have for itself

    @property
    def mark(self) -> str:
        return " †" if self.share else ""


@dataclass(frozen=True)
class StudyRow:
    """A case of a table; `case` is None if it has not been run."""

    id: str
    label: str
    case: CaseResult | None
    values: tuple[Value, ...]

    @property
    def place(self) -> str:
        """Return problem and resolution in words."""
        return place_title(self.id.partition(" ")[0])

    @property
    def seeds(self) -> int:
        return len(self.case.cells) if self.case else 0


@dataclass(frozen=True)
class StudyTable:
    """A table of a study, one row per case."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[StudyRow, ...]

    @property
    def places(self) -> list[str]:
        """Return the problems and resolutions of the rows."""
        return list(dict.fromkeys(row.place for row in self.rows))


def labels(definition: Study | None) -> dict[str, str]:
    """Return the names that a study gives to its cases."""
    rows = definition.rows() if definition else []
    return {row.case.id: row.label for row in rows if row.label}


def study_tables(
    study: StudyResult, definition: Study | None, compared: Iterable[Compared] = ()
) -> list[StudyTable]:
    """Return the tables of a study's definition, or one with default columns.

    Rows are sorted by problem and grid. A case that has not been run has an empty row. Where the
    paper prints a value several times, the one with a standard deviation is shown.
    """
    beside = paper_values(row for row in compared if row.study == study.name)
    defined = [row.case.id for row in definition.rows()] if definition else []
    ids = _by_place(dict.fromkeys([*defined, *(case.id for case in study.cases)]))
    asked = list(definition.tables) if definition else []
    if not asked:
        asked = [Asked(name="cases", title="All cases", columns=list(_DEFAULT_COLUMNS))]
    named = labels(definition)
    return [
        StudyTable(
            table.title,
            tuple(table.columns),
            tuple(
                _row(study, name, named.get(name) or case_title(name), table.columns, beside)
                for name in ids
                if any(fnmatchcase(name, pattern) for pattern in table.rows)
            ),
        )
        for table in asked
    ]


def _by_place(ids: Iterable[str]) -> list[str]:
    """Return the ids of cases grouped by problem and grid, in order of first appearance."""
    found: dict[str, list[str]] = {}
    for name in ids:
        found.setdefault(name.partition(" ")[0], []).append(name)
    return [name for names in found.values() for name in names]


def paper_values(rows: Iterable[Compared]) -> dict[tuple[str, str], Compared]:
    """Return the paper's values by case and quantity."""
    found: dict[tuple[str, str], Compared] = {}
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


def measured(case: CaseResult | None, name: str, paper: Compared | None) -> Value:
    """Return a quantity of a case, which may not have been run, with the paper's number."""
    if case is None:
        return Value(name, None, paper)
    return Value(name, case.spread(name), paper, case.is_shared_time(name))


def _row(
    study: StudyResult,
    name: str,
    label: str,
    columns: Sequence[str],
    beside: dict[tuple[str, str], Compared],
) -> StudyRow:
    case = study.case(name)
    return StudyRow(
        name,
        case.label if case else label,
        case,
        tuple(measured(case, column, beside.get((name, column))) for column in columns),
    )
