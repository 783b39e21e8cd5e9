"""Groups of a study's cells as tasks of other processes, which see the same folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from twoscale.errors import WorkersError
from twoscale.fields.workers import Tasks
from twoscale.runtime.progress import Progress
from twoscale.runtime.tasks import Caller, caller
from twoscale.surrogate.options import resolve_device
from twoscale_lab.study.cells import Cell
from twoscale_lab.study.datasets import OpenDatasets, open_dataset
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.groups import Log, one_line, run_group
from twoscale_lab.study.planning import Group

_NAMED = 2  # groups that are named; the others are counted


class Running:
    """Reports as the stage `running` how many cells of those left run, and which."""

    def __init__(self, groups: Sequence[Group], progress: Progress) -> None:
        self.left = {group.name: group for group in groups}
        self.stages: dict[str, str] = {}  # of the groups that run; another thread hears of them
        self.progress = progress

    def hear(self, message: tuple[str, str]) -> None:
        """Take in what a group tells: its stage, or nothing at its end."""
        name, stage = message
        if stage:
            self.stages[name] = stage
        else:
            self.stages.pop(name, None)

    def end(self, group: Group) -> None:
        """Count a group as done."""
        del self.left[group.name]

    def report(self) -> None:
        """Tell which groups run, such as `poisson-16 fno seed 0 (training 3/8) and 2 more`."""
        stages = {name: stage for name, stage in self.stages.copy().items() if name in self.left}
        if not stages:
            return
        named = list(stages)[:_NAMED]
        words = ", ".join(f"{_words(self.left[name])} ({stages[name]})" for name in named)
        count = self._count(stages)
        if others := count - self._count(named):
            words += f" and {others} more"
        self.progress("running", count, self._count(self.left), words)

    def _count(self, names: Iterable[str]) -> int:
        return sum(len(self.left[name].cells) for name in names)


def _words(group: Group) -> str:
    more = len(group.cells) - 1
    return group.cells[0].name + (f" with {more} more" if more else "")


_MESSAGES = 1.0  # seconds between two messages of a group about its progress


@dataclass(frozen=True)
class RunGroup:
    """Runs a group of cells in a study folder whose datasets are there already.

    The device "auto" is a GPU where the worker has one.
    """

    folder: Path
    device: str

    def __call__(self, group: Group) -> list[tuple[Cell, str]]:
        """Return the cells that failed, each with its error in one line."""
        folder, device = StudyFolder(self.folder), str(resolve_device(self.device))
        report = _Report(group, caller())
        failed: dict[str, tuple[Cell, str]] = {}

        def note(cell: Cell, error: str | None) -> None:
            if error is not None:
                failed[cell.key] = cell, error

        datasets = OpenDatasets(partial(open_dataset, folder, device))
        run_group(group, folder, device, datasets=datasets, progress=report, note=note)
        report.tell("")
        return list(failed.values())


class _Report:
    """The progress of a group, which the command hears; it ends a group that nobody waits for."""

    def __init__(self, group: Group, asked_by: Caller) -> None:
        self.group = group
        self.caller = asked_by
        self.told = ""
        self.latest = 0.0
        self.tell("starting")

    def __call__(self, stage: str, done: int, total: int, remark: str) -> None:
        self.caller.check()
        if stage != self.told or time.monotonic() - self.latest >= _MESSAGES:
            self.told, self.latest = stage, time.monotonic()
            self.tell(stage if total == 1 else f"{stage} {done}/{total}")

    def tell(self, stage: str) -> None:
        self.caller.tell([self.group.name, stage])


def run_groups(
    groups: Sequence[Group], folder: Path, device: str, tasks: Tasks, progress: Progress
) -> Iterator[tuple[Group, list[tuple[Cell, str]]]]:
    """Yield groups with their failed cells, once they have run; bases come before fine-tunings."""
    run = RunGroup(folder.resolve(), device)
    running = Running(groups, progress)
    with tasks.listening(running.hear):
        for tuned in (False, True):
            stage = iter([group for group in groups if group.tuned == tuned])
            for group, found in tasks.as_finished(run, partial(next, stage, None), running.report):
                running.end(group)
                lost = isinstance(found, WorkersError)
                yield group, _failed_cells(group, folder, found) if lost else found


def _failed_cells(group: Group, path: Path, error: WorkersError) -> list[tuple[Cell, str]]:
    """Return the cells that were not finished before workers died of their group."""
    folder = StudyFolder(path)
    failed = [cell for cell in group.cells if not folder.has_run(cell)]
    for cell in failed:
        Log(folder.log(cell)).write(one_line(error))
    return [(cell, one_line(error)) for cell in failed]
