"""How a group of cells runs, in this process or as a task of another one: with logs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence

from twoscale.data import Dataset
from twoscale.files import Checkpoints
from twoscale.runtime.progress import Progress
from twoscale.study.cells import Cell
from twoscale.study.datasets import benchmark_options, generation_seconds
from twoscale.study.fits import GroupWork
from twoscale.study.folder import StudyFolder
from twoscale.study.logs import Log, one_line, with_logs
from twoscale.study.planning import Group

Note = Callable[[Cell, str | None], None]
"""Called with each cell that was run, and its error in one line or None."""


def run_group(
    group: Group,
    folder: StudyFolder,
    device: str,
    *,
    datasets: Callable[[Progress], Sequence[Dataset]],
    progress: Progress,
    note: Note,
    checkpoints: Checkpoints,
) -> None:
    """Run the cells of a group into their run folders, and write their logs.

    `datasets` opens the group's own dataset and those for its tests. A cell that fails does not
    stop the others. Fits save their states as `checkpoints`.
    """
    logs = {cell.key: Log(folder.log(cell)) for cell in group.cells}
    for cell in group.cells:
        logs[cell.key].write(cell.name)
    progress = with_logs(progress, list(logs.values()))

    def fail(cell: Cell, error: Exception) -> None:
        note(cell, one_line(error))
        logs[cell.key].write("".join(traceback.format_exception(error)))

    try:
        dataset, *tests = datasets(progress)
        options = benchmark_options(dataset, tests, generation_seconds(folder, group.data))
        work = GroupWork(dataset, group.cells, folder, device, progress, fail, options)
        if group.searches:
            work.search()
        elif group.tuned:
            work.tune()
        else:
            work.fit(checkpoints)
    except Exception as error:  # such as one of the dataset: the other groups still run
        for cell in group.cells:
            if not folder.has_run(cell):
                fail(cell, error)
    except BaseException as error:
        for log in logs.values():
            log.write(f"stopped: {one_line(error)}")
        raise
    for cell in group.cells:
        if folder.has_run(cell):
            note(cell, None)
            metrics = folder.fresh_result(cell).content["metrics"]
            logs[cell.key].write(f"finished, relative error {metrics['mre']:.4g}")
