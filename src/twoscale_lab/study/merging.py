"""Merge records of the same studies, such as those of several machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale_lab.study.folder import StudyFolder, read_records, write_record


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
    cells = {cell["key"]: cell for cell in _placed(records, environments)}
    failed = {entry["key"]: entry for record in records for entry in record.get("failed", [])}
    return {
        **last,
        "environments": environments,
        "cells": list(cells.values()),
        "failed": [entry for key, entry in failed.items() if key not in cells],
    }


def _placed(
    records: Iterable[Mapping[str, Any]], environments: list[Any]
) -> Iterable[dict[str, Any]]:
    """Yield the cells of records; their environments are collected, each once."""
    for record in records:
        for cell in record["cells"]:
            environment = record["environments"][cell["environment"]]
            if environment not in environments:
                environments.append(environment)
            yield {**cell, "environment": environments.index(environment)}
