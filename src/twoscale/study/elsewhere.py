"""Groups of a study's cells as tasks of other processes, which see the same folder."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from twoscale.fields.workers import Tasks
from twoscale.study.cells import Cell
from twoscale.study.datasets import benchmark_options, generation_seconds, open_dataset
from twoscale.study.fits import GroupWork
from twoscale.study.folder import StudyFolder
from twoscale.study.logs import Log, one_line
from twoscale.study.planning import Group


@dataclass(frozen=True)
class RunGroup:
    """Runs a group of cells in a study folder whose datasets are there already.

    A task may be done twice, if a worker dies. Cells that have a run folder are then left alone.
    """

    folder: Path
    device: str

    def __call__(self, group: Group) -> list[tuple[Cell, str]]:
        """Return the cells that failed, each with its error in one line."""
        folder = StudyFolder(self.folder)
        failed: list[tuple[Cell, str]] = []

        def fail(cell: Cell, error: Exception) -> None:
            failed.append((cell, one_line(error)))
            Log(folder.log(cell)).write("".join(traceback.format_exception(error)))

        cells = [cell for cell in group.cells if not folder.has_run(cell)]
        if not cells:
            return []
        try:
            dataset, *tests = (
                open_dataset(folder, data, self.device, _silent)
                for data in (group.data, *group.tests)
            )
            options = benchmark_options(dataset, tests, generation_seconds(folder, group.data))
            work = GroupWork(dataset, cells, folder, self.device, _silent, fail, options)
            if group.searches:
                work.search()
            elif group.tuned:
                work.tune()
            else:
                work.fit()
        except Exception as error:
            for cell in cells:
                if not folder.has_run(cell):
                    fail(cell, error)
        return failed


def run_groups(
    groups: Iterable[Group], folder: Path, device: str, tasks: Tasks
) -> Iterator[tuple[Group, list[tuple[Cell, str]]]]:
    """Yield groups with their failed cells, once they have run; bases come before fine-tunings."""
    listed = list(groups)
    run = RunGroup(folder.resolve(), device)
    for tuned in (False, True):
        stage = [group for group in listed if group.tuned == tuned]
        yield from zip(stage, tasks.each(run, stage), strict=True)


def _silent(stage: str, done: int, total: int, remark: str) -> None:
    pass
