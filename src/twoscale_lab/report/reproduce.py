"""The paper's tables, the command that repeats each, and the GPU time that it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from twoscale.report.display import ABSENT
from twoscale.runtime.stages import FINETUNE_PREPARE, FINETUNING, INFERENCE
from twoscale_lab.report.results import StudyResult
from twoscale_lab.report.studies import Studies, read_studies, record_files
from twoscale_lab.report.study_documents import NO_RECORDS, markdown
from twoscale_lab.study.paper.comparison import by_study
from twoscale_lab.study.paper.published import paper_tables

NOTE = (
    "GPU minutes are sums of the recorded times on one NVIDIA H200. They cover fits, fine-tuning "
    "and predictions; generating the data and measuring the errors come on top. Networks of "
    "several studies were trained side by side, so a study that is run alone takes longer. A value "
    "agrees within two of the paper's standard deviations or 5 %, whichever is larger."
)
"""What a page says below the table."""

_OF_FINETUNING = (FINETUNE_PREPARE.name, FINETUNING.name, INFERENCE.name)


def reproduce_table(folder: Path) -> str:
    """Return a Markdown table of the paper's studies from a folder of records.

    A row has the numbers of the paper's tables, the study's title, the command, the number of runs,
    the minutes of GPU time, and how many of the paper's values agree.
    """
    if not record_files(folder):
        return NO_RECORDS
    studies = read_studies(folder)
    shown = [study for study in studies.results if table_numbers(study.name)]
    rows = sorted(shown, key=lambda study: table_numbers(study.name)[0])
    header = [
        "paper's tables",
        "what it compares",
        "command",
        "runs",
        "GPU minutes",
        "values that agree",
    ]
    return "\n".join(markdown(header, (_row(study, studies) for study in rows)))


def table_numbers(study: str) -> list[int]:
    """Return the numbers of the paper's tables that a study repeats, in order."""
    tables = paper_tables().values()
    return sorted(
        table.number for table in tables if table.study == study and table.number is not None
    )


def gpu_seconds(cells: Iterable[Mapping[str, Any]]) -> float:
    """Return the seconds that the cells of one study took.

    The time of a fine-tuned cell includes that of the fit it started from. If that fit is a cell of
    the same study, it is counted once.
    """
    cells = list(cells)
    fits = {_fit(cell) for cell in cells if not cell["objective"]}
    total = 0.0
    for cell in cells:
        timings = cell["metrics"]["timings"]
        if cell["objective"] and _fit(cell) in fits:
            total += sum(timings.get(stage, 0.0) for stage in _OF_FINETUNING)
        else:
            total += timings["total"]
    return total


def _fit(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what identifies the fit of a cell, before any fine-tuning."""
    settings = tuple(sorted((name, str(value)) for name, value in cell["settings"].items()))
    keys = ("problem", "resolution", "training", "method", "seed")
    return (*(cell[key] for key in keys), settings)


def _row(study: StudyResult, studies: Studies) -> list[str]:
    definition = studies.definitions.get(study.name)
    counts = by_study(studies.compared).get(study.name)
    seconds = gpu_seconds(cell for case in study.cases for cell in case.cells)
    return [
        _ranges(table_numbers(study.name)),
        definition.title if definition else study.name,
        f"`twoscale study run {study.name} --out studies`",
        str(study.cells),
        f"{seconds / 60:.1f}",
        f"{counts.match:,} of {counts.judged:,}" if counts else ABSENT,
    ]


def _ranges(numbers: list[int]) -> str:
    """Return numbers as text, three or more in a row as a range: 1, 9, 30 to 35."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(str(number) for number in run)
        for run in runs
    ]
    return ", ".join(texts)
