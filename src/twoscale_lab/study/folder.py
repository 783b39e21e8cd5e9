"""The folder of studies: datasets, cells, logs and records. Several studies share one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output, content_digest, plain_json, read_json, working, write_json
from twoscale.files.outputs import check_name
from twoscale.files.work_folder import sweep
from twoscale.run.folder import CONFIG, ENVIRONMENT, HISTORY, METRICS, SEARCH, read_run_json
from twoscale.surrogate.artifact import MANIFEST, WEIGHTS
from twoscale_lab.study.cells import Cell, Data

RECORD_FORMAT = 1

BENCHMARK = "benchmark.json"
"""The file of a run folder with what a study measures beyond `metrics.json`."""

_PARTS = ("data", "cells", "logs", "records")
_RESULT = (
    "config_hash",
    "metrics",
    "retained",
    "epochs",
    "weights",
    "model_bytes",
    "processes",
    "found",
)


@dataclass(frozen=True)
class Result:
    """The result of a cell, as records hold it, and the environment in which it was computed."""

    content: dict[str, Any]
    environment: dict[str, Any]


class StudyFolder:
    """A folder that grows study by study; a cell that is finished is not run again.

    A cell is finished if its run folder is here or if a record has it: records may be copied alone.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_name(self.path)
        if os.path.lexists(self.path) and not os.path.isdir(self.path):
            raise TwoscaleError(f"{self.path} is not a folder: choose another path")
        for name in _PARTS:
            part = self.path / name
            if os.path.lexists(part) and not part.is_dir():
                raise TwoscaleError(
                    f"{part} is in the way of a folder of that name: move it, or choose another "
                    "path"
                )
        self._recorded: dict[str, Result] = {}
        for record in read_records(self.path / "records"):
            self.remember(record)

    def remember(self, record: Mapping[str, Any]) -> None:
        """Take the cells of a record as finished."""
        for cell in record["cells"]:
            content = {name: cell[name] for name in _RESULT if name in cell}
            environment = record["environments"][cell["environment"]]
            self._recorded[cell["key"]] = Result(content, environment)

    def data(self, data: Data) -> Path:
        return self.path / "data" / f"{data.name}.zarr"

    def generation(self, data: Data) -> Path:
        """Return the file that says how long the generation of a dataset took."""
        return self.path / "data" / f"{data.name}.json"

    def cell(self, cell: Cell) -> Path:
        return self.path / "cells" / cell.key

    def group(self, name: str) -> Path:
        """Return the place beside which a group of cells keeps its checkpoints."""
        return self.path / "cells" / f"group-{name}"

    def log(self, cell: Cell) -> Path:
        return self.path / "logs" / f"{cell.key}.log"

    def record(self, study: str) -> Path:
        return self.path / "records" / f"{study}.json"

    def fields(self, study: str) -> Path:
        return self.path / "records" / f"{study}.npz"

    def has_run(self, cell: Cell) -> bool:
        """Say whether the cell's run folder is here, to predict with or to fine-tune from."""
        return self.cell(cell).is_dir()

    def result(self, cell: Cell) -> Result | None:
        """Return the result of a cell, None if it is not finished."""
        if self.has_run(cell) and cell.key not in self._recorded:
            return self.fresh_result(cell)
        return self._recorded.get(cell.key)

    def fresh_result(self, cell: Cell) -> Result:
        """Return the result in a cell's run folder, even if a record has another one."""
        run = self.cell(cell)
        try:
            self._recorded[cell.key] = read_result(run)
        except (TwoscaleError, OSError, LookupError, TypeError, AttributeError) as error:
            raise TwoscaleError(
                f"the run folder of {cell.name} is damaged ({error}): remove {run} to run it again"
            ) from error
        return self._recorded[cell.key]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other processes that run studies; a lock ends with its process.

        Workers do not hold this lock: each group of cells has its own.
        """
        subject = f"running a study in {self.path}"
        with working(self.path / "study", subject=subject):
            for name in _PARTS:
                sweep(self.path / name)
            yield


def read_result(run: Path) -> Result:
    """Return the result in a run folder."""
    config = read_run_json(run, CONFIG)
    history = read_run_json(run, HISTORY)
    metrics = read_run_json(run, METRICS)
    metrics.pop("measured_on", None)  # always the test samples, in a study
    if (run / BENCHMARK).is_file():
        metrics |= read_json(run / BENCHMARK)
    content = {
        "config_hash": config["hash"],
        "metrics": metrics,
        "retained": read_run_json(run, MANIFEST)["retained"],
        "epochs": {stage: _training_summary(curve) for stage, curve in history.items()},
        "model_bytes": (run / WEIGHTS).stat().st_size,
    }
    if tuning := config.get("finetuning"):
        content["weights"] = tuning["weights"]
    if (run / SEARCH).is_file():
        content["found"] = _found(config, read_run_json(run, SEARCH))
    environment = read_run_json(run, ENVIRONMENT)
    if "processes" in environment:
        content["processes"] = environment["processes"]
    return Result(content, environment)


def _found(config: dict[str, Any], search: dict[str, Any]) -> dict[str, Any]:
    """Return what a search chose, among how many, and how long it took."""
    return {
        "method": config["method"],
        "settings": config["settings"],
        "trials": len(search["trials"]),
        "seconds": search["seconds"],
    }


def _training_summary(curve: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of a training: epochs run, the best epoch and its loss."""
    return {
        "run": len(curve["training_loss"]),
        "best": curve["best_epoch"],
        "validation_loss": curve["validation_loss"][curve["best_epoch"]],
        "members": curve.get("members", 1),  # networks trained together, sharing the time
    }


def read_record(file: Path) -> dict[str, Any]:
    """Return a study's record, checked."""
    from twoscale_lab.study.record_check import check_record  # needs an optional dependency

    record = read_json(file)
    if record.get("format") != RECORD_FORMAT:
        raise TwoscaleError(
            f"{file} has record format {record.get('format')}; this twoscale reads {RECORD_FORMAT}"
        )
    if "checksum" in record and record.pop("checksum") != content_digest(record):
        raise TwoscaleError(f"{file} is damaged: it has changed since it was written")
    check_record(file, record)
    return record


def record_files(folder: Path) -> list[Path]:
    """Return the records of a study folder, or of a folder of records."""
    inside = folder / "records"
    return sorted((inside if inside.is_dir() else folder).glob("*.json"))


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a study folder, or of a folder of records."""
    return [read_record(file) for file in record_files(folder)]


@dataclass
class StudyRecord:
    """A study's record while its cells run: the cells that it may hold, and those that failed.

    `head` says of which study and scale it is, and by which command.
    """

    file: Path
    head: Mapping[str, Any]
    cells: Sequence[Cell]
    folder: StudyFolder
    failed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note(self, cell: Cell, error: str | None) -> None:
        """Remember the error of a cell that failed; None for one that did not."""
        if error is None:
            self.failed.pop(cell.key, None)
        elif any(cell.key == one.key for one in self.cells):
            entry = {"case": cell.case.id, "seed": cell.seed, "key": cell.key}
            self.failed[cell.key] = entry | {"error": error}

    def write(self) -> dict[str, Any]:
        """Write the record of the cells finished so far, and return it."""
        environments: list[dict[str, Any]] = []
        cells = []
        for cell in self.cells:
            if (result := self.folder.result(cell)) is None:
                continue
            place = _place(result.environment, environments)
            cells.append(_described(cell) | {"environment": place} | result.content)
        known = {cell["key"] for cell in cells}
        record = {
            "format": RECORD_FORMAT,
            **self.head,
            "environments": environments,
            "cells": cells,
            "failed": [entry for key, entry in self.failed.items() if key not in known],
        }
        write_record(self.file, record)
        return record


def _described(cell: Cell) -> dict[str, Any]:
    case = cell.case
    return {
        "case": case.id,
        "key": cell.key,
        "problem": case.problem,
        "resolution": case.resolution,
        "samples": case.samples,
        "training": cell.training,
        "method": case.method,
        "objective": case.objective,
        "settings": dict(case.settings),
        "seed": cell.seed,
        **({"tests": [data.name for data in cell.tests]} if cell.tests else {}),
    }


def write_record(file: Path, record: dict[str, Any]) -> None:
    """Write a record in one step: readers find the old one or the new one."""
    sealed = plain_json(record)
    with atomic_output(file, overwrite=True) as prepared:
        write_json(prepared, sealed | {"checksum": content_digest(sealed)})


def merge_folders(folders: Sequence[Path], out: Path) -> list[Path]:
    """Write the records of some folders into one study folder, which may have records already.

    A folder is a study folder or a folder of records. Of a cell that several have, the last one
    counts. Fields for pictures are not merged. The files that were written are returned.
    """
    target = StudyFolder(out)
    by_study: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        found = read_records(folder)
        if not found:
            raise TwoscaleError(f"{folder} has no records of studies: give a folder that has some")
        for record in found:
            by_study.setdefault(record["study"], []).append(record)
    with target.locked():
        known = {record["study"]: record for record in read_records(out)}
        merged = {
            study: merge_records([known[study], *records] if study in known else records)
            for study, records in by_study.items()
        }
        for study, record in merged.items():
            write_record(target.record(study), record)
    return [target.record(study) for study in merged]


def merge_records(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one record with the cells of several, which are of one study at one scale."""
    last = records[-1]
    if scales := {record["scale"] for record in records} - {last["scale"]}:
        raise TwoscaleError(
            f"records of {last['study']} are at the scales {last['scale']} and {scales.pop()}: "
            "merge those of one scale"
        )
    environments: list[Any] = []
    cells = {
        cell["key"]: cell
        | {"environment": _place(record["environments"][cell["environment"]], environments)}
        for record in records
        for cell in record["cells"]
    }
    failed = {entry["key"]: entry for record in records for entry in record.get("failed", [])}
    return {
        **last,
        "environments": environments,
        "cells": list(cells.values()),
        "failed": [entry for key, entry in failed.items() if key not in cells],
    }


def _place(environment: dict[str, Any], environments: list[dict[str, Any]]) -> int:
    """Return the number of an environment in a list, to which it is added if it is new."""
    if environment not in environments:
        environments.append(environment)
    return environments.index(environment)
