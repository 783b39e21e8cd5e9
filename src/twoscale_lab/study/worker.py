"""Run planned cells on a machine that has neither typer nor pydantic, PyYAML or Zarr.

`twoscale study run NAME --out DIR --plan cells.json` writes the unfinished cells of a study to a
file. On the other machine, `python -m twoscale_lab.study.worker cells.json --out records` generates
their datasets in memory, fits them and writes a record. `twoscale study merge records --out DIR`
brings it home.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twoscale.data.generation import GeneratedDataset
from twoscale.errors import TwoscaleError
from twoscale.files import read_json
from twoscale.runtime.texts import percent
from twoscale.runtime.timing import now
from twoscale.surrogate.options import resolve_device
from twoscale_lab.study.cells import Case, Cell, Data
from twoscale_lab.study.datasets import benchmark_options
from twoscale_lab.study.fits import GroupWork, warm_up
from twoscale_lab.study.folder import (
    Result,
    StudyFolder,
    make_record,
    recorded_results,
    write_record,
)
from twoscale_lab.study.planning import Group, make_plan

_HEAD = ("study", "scale", "command")


def planned(cell: Cell) -> dict[str, Any]:
    """Return a cell as a plan holds it; `read_cell` is the way back."""
    if cell.finetuning is not None:
        raise TwoscaleError(f"{cell.name} is fine-tuned: a plan holds fits and searches only")
    case = cell.case
    names = ("problem", "resolution", "samples", "training", "method", "settings")
    return {
        "case": {name: getattr(case, name) for name in names},
        "seed": cell.seed,
        "settings": dict(cell.settings),
        "problem": dict(cell.problem),
        "tests": [data.as_dict() for data in cell.tests],
        "key": cell.key,
    }


def read_cell(content: Mapping[str, Any]) -> Cell:
    """Return the cell that `planned` described."""
    case = Case(**content["case"])
    cell = Cell(
        case,
        content["seed"],
        {**content["settings"], **case.resolve(content["settings"])},
        problem=content["problem"],
        tests=tuple(
            Data(**(data | {"settings": tuple(data.get("settings", {}).items())}))
            for data in content["tests"]
        ),
    )
    if cell.key != content["key"]:
        raise TwoscaleError(f"{cell.name} is another cell here: plan and run with one version")
    return cell


def run_plan(
    plan: Path, out: Path, *, only: Sequence[str] = (), device: str = "auto"
) -> dict[str, Any]:
    """Run the cells of a plan that no record in `out` has yet; return the record.

    `only` are patterns of cases. The record is written after every group of cells. Run folders are
    not kept: the weights of large cells take gigabytes.
    """
    content = read_json(plan, require={"study": str, "cells": list})
    cells = [read_cell(one) for one in content["cells"]]
    chosen = [cell for cell in cells if not only or _named(cell, only)]
    file = out / f"{content['study']}.json"
    known = recorded_results(read_json(file)) if file.exists() else {}
    record = _Record(file, {name: content[name] for name in _HEAD}, cells, known)
    with TemporaryDirectory() as scratch:
        folder = StudyFolder(scratch)
        todo = [cell for cell in chosen if cell.key not in known]
        work = _Work(folder, record, str(resolve_device(device)))
        if todo:
            warm_up(work.device)
        for group in make_plan(folder, todo, alone={cell.key for cell in todo}).groups:
            work.run(group)
    return record.write()


def _named(cell: Cell, only: Iterable[str]) -> bool:
    return any(fnmatchcase(cell.case.id, pattern) for pattern in only)


class _Record:
    """The record of a plan's cells while they run."""

    def __init__(
        self, file: Path, head: dict[str, Any], cells: Sequence[Cell], known: dict[str, Result]
    ) -> None:
        self.file, self.head, self.cells, self.known = file, head, cells, known
        self.failed: list[dict[str, Any]] = []

    def fail(self, cell: Cell, error: Exception) -> None:
        entry = {"case": cell.case.id, "seed": cell.seed, "key": cell.key}
        self.failed.append(entry | {"error": f"{type(error).__name__}: {error}"})

    def write(self) -> dict[str, Any]:
        finished = [(cell, self.known[cell.key]) for cell in self.cells if cell.key in self.known]
        record = make_record(finished, self.failed, **self.head)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_record(self.file, record)
        return record


class _Work:
    """Runs groups of cells; the datasets of the last one stay in memory."""

    def __init__(self, folder: StudyFolder, record: _Record, device: str) -> None:
        self.folder, self.record, self.device = folder, record, device
        self.opened: dict[Data, tuple[GeneratedDataset, float]] = {}

    def run(self, group: Group) -> None:
        """Run the cells of a group, and write the record."""
        start = now()
        try:
            (dataset, seconds), *tests = self._datasets((group.data, *group.tests))
            options = benchmark_options(dataset, [test for test, _ in tests], seconds)
            work = GroupWork(
                dataset, group.cells, self.folder, self.device, _silent, self.record.fail, options
            )
            if group.searches:
                work.search()
            else:
                work.fit()
        except Exception as error:  # such as one of the dataset: other groups still run
            for cell in group.cells:
                self.record.fail(cell, error)
        for cell in group.cells:
            if self.folder.has_run(cell):
                result = self.record.known[cell.key] = self.folder.fresh_result(cell)
                words = percent(result.content["metrics"]["mean_relative_l2"])
                print(f"{cell.name}: {words}, {now() - start:.0f} s", flush=True)
        self.record.write()

    def _datasets(self, wanted: Sequence[Data]) -> list[tuple[GeneratedDataset, float]]:
        """Return datasets in memory, and the seconds that their generation took."""
        for data in self.opened.keys() - set(wanted):
            del self.opened[data]
        for data in wanted:
            if data not in self.opened:
                start = now()
                dataset = GeneratedDataset(
                    data.make_problem(),
                    resolution=data.resolution,
                    samples=data.samples,
                    seed=data.seed,
                    device=self.device,
                )
                self.opened[data] = (dataset, now() - start)
        return [self.opened[data] for data in wanted]


def _silent(stage: str, done: int, total: int, remark: str) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a plan from the command line; return how many cells failed."""
    parser = argparse.ArgumentParser(prog="python -m twoscale_lab.study.worker")
    parser.add_argument("plan", type=Path, help="The file that `study run --plan` wrote.")
    parser.add_argument("--out", type=Path, required=True, help="The folder of the record.")
    parser.add_argument("--only", action="append", default=[], help="A pattern of cases.")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args(arguments)
    record = run_plan(given.plan, given.out, only=given.only, device=given.device)
    for entry in record["failed"]:
        print(f"failed: {entry['case']} seed {entry['seed']}: {entry['error']}", file=sys.stderr)
    return len(record["failed"])


if __name__ == "__main__":
    sys.exit(main())
