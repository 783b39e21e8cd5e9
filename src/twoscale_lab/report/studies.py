"""All records of a study folder, with their definitions and the comparison with the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale_lab.report.results import StudyResult, read_study
from twoscale_lab.report.study_tables import labels
from twoscale_lab.study.catalogue import recorded_study, study_names
from twoscale_lab.study.definition import Study
from twoscale_lab.study.folder import read_record
from twoscale_lab.study.paper.comparison import Row as Compared
from twoscale_lab.study.paper.comparison import compare


@dataclass(frozen=True)
class Studies:
    """Results in the order of the studies, definitions of those that are known, comparisons."""

    folder: Path
    results: tuple[StudyResult, ...]
    definitions: Mapping[str, Study]
    compared: tuple[Compared, ...]

    def result(self, name: str) -> StudyResult | None:
        """Return the result of that study, if there is one."""
        return next((study for study in self.results if study.name == name), None)


def read_studies(folder: Path) -> Studies:
    """Return the studies in a study folder or in a folder of records."""
    paths = record_files(folder)
    if not paths:
        raise TwoscaleError(
            f"{folder} holds no records: run a study into it, or give the folder of its records"
        )
    return make_studies(folder, {path: read_record(path) for path in paths})


def record_files(folder: Path) -> list[Path]:
    """Return the records of a study folder, or of a folder of records, in the studies' order."""
    place = folder / "records" if (folder / "records").is_dir() else folder
    order = {name: position for position, name in enumerate(study_names())}
    return sorted(
        place.glob("*.json"), key=lambda path: (order.get(path.stem, len(order)), path.stem)
    )


def make_studies(folder: Path, records: Mapping[Path, Mapping[str, Any]]) -> Studies:
    """Return the studies of some records."""
    definitions: dict[str, Study] = {}
    results = []
    for path, record in records.items():
        definition = recorded_study(record)
        if definition is not None:
            definitions[record["study"]] = definition
        asked = [row.case.id for row in definition.rows()] if definition else []
        results.append(read_study(path, labels(definition)).ordered(asked))
    measured = [record for record in records.values() if record["scale"] == "paper"]
    known = {record["study"] for record in measured}
    rows = [row for row in compare(measured) if row.study in known] if measured else []
    return Studies(folder, tuple(results), definitions, tuple(rows))
