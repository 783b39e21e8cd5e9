"""Findings on a run or a saved surrogate: which files are whole, and which are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twoscale.data import Finding
from twoscale.errors import TwoscaleError
from twoscale.files import SUMS, check_file, read_sums
from twoscale.run.folder import (
    CONFIG,
    ENVIRONMENT,
    HISTORY,
    METRICS,
    SPLIT,
    Run,
    read_run_json,
)
from twoscale.surrogate import Surrogate
from twoscale.surrogate.artifact import MANIFEST, PAGE, WEIGHTS


def check_run(path: Path) -> list[Finding]:
    """Return the findings on a run folder or saved surrogate; every file is read once."""
    return [*_surrogate_findings(path), *_file_findings(path), *_dataset_findings(path)]


def _surrogate_findings(path: Path) -> Iterator[Finding]:
    try:
        surrogate = Surrogate.load(path, device="cpu")
    except TwoscaleError as error:
        yield Finding("error", str(error))
        return
    tensors = surrogate.operator_.state_dict().values()
    count = sum(tensor.numel() for tensor in tensors)
    spaces = f"{surrogate.input_space_} inputs and {surrogate.output_space_} outputs"
    yield Finding("ok", f"{surrogate.method} surrogate of {spaces}: it loads and predicts")
    yield Finding("ok", f"weights: {count} numbers, all finite, match their checksums")


def _file_findings(path: Path) -> Iterator[Finding]:
    """Compare the files of a run with their checksums; a saved surrogate has no such list."""
    if not (path / SUMS).exists():
        if (path / CONFIG).exists():
            yield Finding("error", f"{SUMS} is missing: the files of this run cannot be checked")
        return
    try:
        names = list(read_sums(path))
    except TwoscaleError as error:
        yield Finding("error", str(error))
        return
    known = {MANIFEST, WEIGHTS, CONFIG, SPLIT, HISTORY, METRICS, ENVIRONMENT}
    damaged = [
        f"{path / SUMS} is damaged: it does not list {name}" for name in sorted(known - set(names))
    ]
    for name in names:
        try:
            check_file(path, name)
        except TwoscaleError as error:
            damaged.append(str(error))
    yield from (Finding("error", sentence) for sentence in damaged)
    if not damaged:
        yield Finding("ok", f"all {len(names)} files of the run match their checksums")
    held = {str(one.relative_to(path)) for one in path.rglob("*") if one.is_file()}
    if others := sorted(held - {*names, SUMS, PAGE}):
        yield Finding("warning", f"files that the run did not write: {', '.join(others[:5])}")


def _dataset_findings(path: Path) -> Iterator[Finding]:
    """Say whether the dataset of a run is at its path, and unchanged."""
    if not (path / CONFIG).exists():
        return
    try:
        read_run_json(path, CONFIG)
    except TwoscaleError:
        return  # said already
    try:
        dataset = Run.open(path, device="cpu").dataset
    except TwoscaleError as error:
        yield Finding("warning", f"its dataset: {error}")
        return
    yield Finding("ok", f"its dataset {dataset.path} is there and unchanged")
