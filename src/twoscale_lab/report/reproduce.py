"""The paper's tables, the study that repeats each, and the GPU time that it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twoscale.runtime.stages import FINETUNE_PREPARE, FINETUNING, INFERENCE
from twoscale_lab.report.results import Studies
from twoscale_lab.study.paper.comparison import by_study
from twoscale_lab.study.paper.published import paper_tables

_OF_FINETUNING = (FINETUNE_PREPARE.name, FINETUNING.name, INFERENCE.name)


def reproduced(studies: Studies) -> list[dict[str, Any]]:
    """Return a row for each of the paper's studies, in the order of the paper's tables.

    It has the numbers of the tables, the study with its title, the minutes of GPU time, and how
    many of the paper's values agree.
    """
    shown = [study for study in studies.results if table_numbers(study.name)]
    counts = by_study(studies.compared)
    return [
        {
            "tables": _ranges(table_numbers(study.name)),
            "title": studies.title(study),
            "study": study,
            "minutes": gpu_seconds(cell for case in study.cases for cell in case.cells) / 60,
            "counts": counts[study.name],
        }
        for study in sorted(shown, key=lambda study: table_numbers(study.name)[0])
    ]


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
