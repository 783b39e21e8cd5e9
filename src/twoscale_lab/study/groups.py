"""How a group of cells runs, in this process or as a task of another one: with a lock and logs."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from twoscale.data import Dataset
from twoscale.errors import ResumableError, TwoscaleError
from twoscale.files import Checkpoints, remove, working
from twoscale.files.work_folder import Wait
from twoscale.math.pca import SOLVERS
from twoscale.representation import PatchPCA
from twoscale.run import Run, RunRequest, auto_run, finetune_run, fit_runs
from twoscale.runtime.progress import Progress
from twoscale.search.policy import INTERRUPTED
from twoscale.surrogate.driver import kept_checkpoints
from twoscale_lab.study.cells import Cell, Data
from twoscale_lab.study.datasets import benchmark_options, generation_seconds
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.planning import Group

# A link would lead to another file, and a pipe would block the study.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Log:
    """A cell's log file: lines of time and text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, text: str) -> None:
        """Append a line with the time."""
        moment = datetime.now().astimezone().isoformat(timespec="seconds")
        line = f"{moment} {text}\n".encode(errors="backslashreplace")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _PLAIN_FILE, 0o666)
        with open(descriptor, "ab") as log:
            log.write(line)


def with_logs(progress: Progress, logs: Sequence[Log]) -> Progress:
    """Return a progress function that also logs the beginning and end of each stage."""

    def report(stage: str, done: int, total: int, remark: str) -> None:
        progress(stage, done, total, remark)
        if done in (0, total):
            for log in logs:
                log.write(" ".join(f"{stage} {done}/{total} {remark}".split()))

    return report


def one_line(error: BaseException) -> str:
    """Return an error in one line, with its type if it is not a TwoscaleError."""
    text = " ".join(str(error).split())
    return text if isinstance(error, TwoscaleError) else f"{type(error).__name__}: {text}"


def warm_up(device: str) -> None:
    """Solve small PCAs: the first fit's time should not include the start of libraries."""
    fields = torch.rand(64, 1, 16, 16, generator=torch.Generator().manual_seed(0)).to(device)
    for solver in SOLVERS:
        PatchPCA(0.9, patches=(2, 2), solver=solver).fit(fields)


def run_cells(
    cells: Sequence[Cell],
    dataset: Dataset,
    folder: StudyFolder,
    *,
    fail: Callable[[Cell, Exception], None],
    checkpoints: Checkpoints,
    tests: Mapping[str, Any],
    **options: Any,
) -> None:
    """Fit, search for or fine-tune the cells of a group, each into its run folder.

    A cell that fails is told to `fail`, and the others still run. `tests` are the options of runs
    that are tested on datasets of their own. `options` are device and progress. Searches and
    fine-tunings keep checkpoints of their own beside the run folders.
    """
    if cells[0].finetuning is None and not cells[0].searches:
        places = {folder.cell(cell): cell for cell in cells}
        fit_runs(
            dataset,
            [
                RunRequest(
                    place,
                    cell.case.method,
                    cell.seed,
                    cell.settings,
                    _training(cell),
                    calibrates=False,
                )
                for place, cell in places.items()
            ],
            on_error=lambda request, error: fail(places[request.out], error),
            checkpoints=checkpoints,
            **options,
            **tests,
        )
        return
    for cell in cells:
        try:
            if cell.searches:
                _search(cell, dataset, folder, **options, **tests)
            else:
                _tune(cell, dataset, folder, **options)
        except Exception as error:
            fail(cell, error)


def _search(cell: Cell, dataset: Dataset, folder: StudyFolder, **options: Any) -> None:
    """Search for the surrogate of a cell; the budget limits its time."""
    run = auto_run(
        dataset,
        folder.cell(cell),
        seed=cell.seed,
        training_samples=_training(cell),
        calibrates=False,
        **cell.settings,
        **options,
    )
    if run.search is not None and run.search["stopped"] == INTERRUPTED:
        remove(run.path)  # the best so far is not what the budget finds
        raise KeyboardInterrupt


def _tune(
    cell: Cell, dataset: Dataset, folder: StudyFolder, *, device: str, progress: Progress
) -> None:
    """Fine-tune a cell from the run folder of its base."""
    base = cell.base
    assert base is not None
    assert cell.finetuning is not None
    if not folder.has_run(base):
        raise TwoscaleError(f"there is no {base.name} to fine-tune: it failed before")
    run = Run.open(folder.cell(base), device=device)
    finetune_run(run, folder.cell(cell), data=dataset, progress=progress, **cell.finetuning)


def _training(cell: Cell) -> int | None:
    """Return how many samples train; None for all that validation leaves of the dataset."""
    return None if cell.tests else cell.training


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
