"""Find runs, and write the report of one or several of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output
from twoscale.report.figure_folder import check_page_file
from twoscale.report.page import GENERATOR
from twoscale.report.run_page import run_page
from twoscale.report.run_record import RunRecord, read_run
from twoscale.report.runs_page import distinct_names, runs_page
from twoscale.run import Run
from twoscale.run.folder import CONFIG
from twoscale.runtime.progress import Progress
from twoscale.surrogate.artifact import PAGE, is_surrogate

_MOST_RUNS = 50


def find_runs(path: Path) -> list[Path]:
    """Return the run at a path, or the runs in a folder such as that of several seeds.

    They are in the order of their names, numbers by size.
    """
    if is_surrogate(path):
        return [path]
    try:
        inside = [entry for entry in path.iterdir() if entry.is_dir() and is_surrogate(entry)]
    except OSError:
        return []
    return sorted(inside, key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def write_run_report(
    folders: Sequence[Path],
    out: Path | None = None,
    *,
    data: Path | None = None,
    device: str = "auto",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> tuple[Path, dict[str, RunRecord]]:
    """Write the report of one run, or of several; return the page, and the runs by their names.

    By default the page is `report.html` in the run's folder, and replaces the one that the fit
    wrote there; of several runs it lies in the folder that holds them all. `data` shows the runs on
    other samples than those of their test splits.
    """
    if len(folders) > _MOST_RUNS:
        raise TwoscaleError(
            f"{len(folders)} runs are too many for one page: give at most {_MOST_RUNS}"
        )
    for folder in folders:
        if not (folder / CONFIG).exists():
            raise TwoscaleError(
                f"{folder} is a surrogate saved from Python, without its data and errors: a "
                "report is of a run, which 'twoscale fit' writes"
            )
    page = _default_page(folders) if out is None else out
    own = out is None and len(folders) == 1 and _is_own(page)
    check_page_file(page, overwrite=overwrite or own)
    records = []
    for done, folder in enumerate(folders):
        if progress:
            progress("runs", done, len(folders), folder.name)
        run = Run.open(folder, device=device)
        records.append(read_run(run, run.open_data(data) if data else None))
    names = dict(zip(distinct_names(folders), records, strict=True))
    text = run_page(records[0]) if len(records) == 1 else runs_page(names)
    with atomic_output(page, overwrite=overwrite or own) as prepared:
        prepared.write_text(text, encoding="utf-8")
    if progress:
        progress("runs", len(folders), len(folders), "")
    return page, names


def _default_page(folders: Sequence[Path]) -> Path:
    if len(folders) == 1:
        return folders[0] / PAGE
    parents = {folder.parent for folder in folders}
    if len(parents) > 1:
        parents = {Path(os.path.commonpath([parent.resolve() for parent in parents]))}
    return parents.pop() / PAGE


def _is_own(page: Path) -> bool:
    """Say whether a page is one that a fit or a report has written."""
    try:
        return GENERATOR in page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
