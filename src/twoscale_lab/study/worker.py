"""Run planned cells on a machine that has neither typer nor pydantic, PyYAML or Zarr.

`twoscale study run NAME --out DIR --plan cells.json` writes the unfinished cells of a study to a
file. On the other machine, `python -m twoscale_lab.study.worker cells.json --out records` generates
their datasets in memory, fits them and writes a record. `twoscale study merge records --out DIR`
brings it home.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.files import read_json
from twoscale.runtime.progress import now
from twoscale.runtime.texts import percent
from twoscale.surrogate.options import resolve_device
from twoscale_lab.study.cells import Case, Cell, Data
from twoscale_lab.study.datasets import OpenDatasets, generated_in_memory
from twoscale_lab.study.folder import StudyFolder, StudyRecord
from twoscale_lab.study.groups import run_group, warm_up
from twoscale_lab.study.planning import make_plan

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
    file, chosen = out / f"{content['study']}.json", str(resolve_device(device))
    with TemporaryDirectory() as scratch:
        folder = StudyFolder(scratch)
        if file.exists():
            folder.remember(read_json(file))
        record = StudyRecord(file, {name: content[name] for name in _HEAD}, cells, folder)
        asked = [
            cell for cell in cells if not only or any(fnmatchcase(cell.case.id, k) for k in only)
        ]
        groups = make_plan(folder, asked, alone={cell.key for cell in asked}).groups
        if groups:
            warm_up(chosen)
        datasets = OpenDatasets(partial(generated_in_memory, folder, chosen))
        for group in groups:
            start = now()
            run_group(group, folder, chosen, datasets=datasets, progress=_silent, note=record.note)
            for cell in group.cells:
                if (result := folder.result(cell)) is not None:
                    words = percent(result.content["metrics"]["mean_relative_l2"])
                    print(f"{cell.name}: {words}, {now() - start:.0f} s", flush=True)
            record.write()
        return record.write()


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
