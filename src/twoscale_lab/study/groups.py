"""How a group of cells runs, in this process or as a task of another one: with a lock and logs."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import torch

from twoscale.data import Dataset
from twoscale.errors import ResumableError
from twoscale.files import working
from twoscale.files.work_folder import Wait
from twoscale.runtime.progress import Progress
from twoscale.surrogate.driver import kept_checkpoints
from twoscale_lab.study.cells import Cell, Data
from twoscale_lab.study.datasets import benchmark_options, generation_seconds
from twoscale_lab.study.fits import run_cells
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.logs import Log, one_line, with_logs
from twoscale_lab.study.planning import Group

_PAUSE = 0.5  # seconds between two looks at a lock

Note = Callable[[Cell, str | None], None]
"""Called with each cell that was run, and its error in one line or None."""

Datasets = Callable[[Sequence[Data], Progress], Sequence[Dataset]]
"""Opens datasets: that of a group and those for its tests."""


def run_group(
    group: Group,
    folder: StudyFolder,
    device: str,
    *,
    datasets: Datasets,
    progress: Progress,
    note: Note,
) -> None:
    """Run the unfinished cells of a group into their run folders, and write their logs.

    A cell that fails does not stop the others. A lock lets one process at a time run the group: a
    worker may still run it for a command that was killed. The next process waits, goes on from its
    checkpoints, and leaves finished cells alone.
    """
    logs = {cell.key: Log(folder.log(cell)) for cell in group.cells}

    outages: list[ResumableError] = []

    def fail(cell: Cell, error: Exception) -> None:
        note(cell, one_line(error))
        logs[cell.key].write("".join(traceback.format_exception(error)))
        if isinstance(error, ResumableError):
            outages.append(error)

    wait = wait_for_lock(progress, list(logs.values()))
    place = folder.group(group.name)
    with suppress(ResumableError), working(place, subject="this group", wait=wait) as work:
        # A worker trains on one thread, this process perhaps on several.
        checkpoints = kept_checkpoints(work, {}, device=torch.device(device), any_threads=True)
        left = [cell for cell in group.cells if not folder.has_run(cell)]
        running = [logs[cell.key] for cell in left]
        report = with_logs(progress, running)
        with _logging(running, [cell.name for cell in left]):
            try:
                if left:
                    dataset, *tests = datasets((group.data, *group.tests), report)
                    run_cells(
                        left,
                        dataset,
                        folder,
                        fail=fail,
                        checkpoints=checkpoints,
                        tests=benchmark_options(
                            dataset, tests, generation_seconds(folder, group.data)
                        ),
                        device=device,
                        progress=report,
                    )
            except Exception as error:  # of all cells, as of their data: the other groups still run
                for cell in left:
                    if not folder.has_run(cell):
                        fail(cell, error)
        if outages:
            raise outages[0]  # noted already; it keeps the checkpoints
    for cell in group.cells:
        if folder.has_run(cell):
            note(cell, None)
            metrics = folder.fresh_result(cell).content["metrics"]
            logs[cell.key].write(f"finished, relative error {metrics['mre']:.4g}")


@contextmanager
def _logging(logs: Sequence[Log], names: Sequence[str]) -> Iterator[None]:
    """Write the names of cells into their logs, and what stopped the block."""
    for log, name in zip(logs, names, strict=True):
        log.write(name)
    try:
        yield
    except BaseException as error:
        for log in logs:
            log.write(f"stopped: {one_line(error)}")
        raise


def wait_for_lock(progress: Progress, logs: Sequence[Log] = ()) -> Wait:
    """Return what waits a moment for a worker that holds a lock; logs hear of each worker once."""
    seen: set[str] = set()

    def wait(holder: str) -> None:
        words = f"for another worker{holder}"
        progress("waiting", 0, 1, words)
        if holder not in seen:
            seen.add(holder)
            for log in logs:
                log.write(f"waiting {words}")
        time.sleep(_PAUSE)

    return wait
