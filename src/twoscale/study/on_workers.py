"""Groups of a study's cells as tasks of other processes, which see the same folder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from twoscale.fields.workers import Tasks
from twoscale.files import working
from twoscale.runtime.progress import Progress
from twoscale.runtime.tasks import Caller, caller
from twoscale.study.cells import Cell
from twoscale.study.datasets import open_dataset
from twoscale.study.folder import StudyFolder
from twoscale.study.groups import run_group
from twoscale.study.logs import Log
from twoscale.study.planning import Group
from twoscale.study.running import Running
from twoscale.surrogate.fitting import kept_checkpoints
from twoscale.surrogate.options import resolve_device

_PAUSE = 0.5  # seconds between two looks at a lock
_MESSAGES = 1.0  # seconds between two messages of a group about its progress


@dataclass(frozen=True)
class RunGroup:
    """Runs a group of cells in a study folder whose datasets are there already.

    A task may be done twice, if a worker dies or seems to. So a lock lets one process at a time run
    the group. The next one goes on from the checkpoints, and leaves finished cells alone. The
    device "auto" is a GPU where the worker has one.
    """

    folder: Path
    device: str

    def __call__(self, group: Group) -> list[tuple[Cell, str]]:
        """Return the cells that failed, each with its error in one line."""
        folder, device = StudyFolder(self.folder), str(resolve_device(self.device))
        report = _Report(group, folder, caller())
        failed: dict[str, tuple[Cell, str]] = {}

        def note(cell: Cell, error: str | None) -> None:
            if error is not None:
                failed[cell.key] = cell, error

        with working(folder.group(group.name), subject="this group", wait=report.wait) as work:
            cells = tuple(cell for cell in group.cells if not folder.has_run(cell))
            if cells:
                run_group(
                    replace(group, cells=cells),
                    folder,
                    device,
                    datasets=lambda progress: [
                        open_dataset(folder, data, device, progress)
                        for data in (group.data, *group.tests)
                    ],
                    progress=report,
                    note=note,
                    checkpoints=kept_checkpoints(work, {}, device=torch.device(device)),
                )
        report.tell("")
        return list(failed.values())


class _Report:
    """The progress of a group, which the command hears; it ends a group that nobody waits for."""

    def __init__(self, group: Group, folder: StudyFolder, asked_by: Caller) -> None:
        self.group, self.folder = group, folder
        self.caller = asked_by
        self.told = self.waited = ""
        self.latest = 0.0
        self.tell("starting")

    def __call__(self, stage: str, done: int, total: int, remark: str) -> None:
        self.caller.check()
        if stage != self.told or time.monotonic() - self.latest >= _MESSAGES:
            self.told, self.latest = stage, time.monotonic()
            self.tell(f"{stage} {done}/{total}")

    def tell(self, stage: str) -> None:
        self.caller.tell([self.group.name, stage])

    def wait(self, holder: str) -> None:
        """Wait a moment for another process that runs the group."""
        self.caller.check()
        if holder != self.waited:
            self.waited = holder
            self.tell("waiting")
            for cell in self.group.cells:
                Log(self.folder.log(cell)).write(f"waiting for another worker{holder}")
        time.sleep(_PAUSE)


def run_groups(
    groups: Sequence[Group], folder: Path, device: str, tasks: Tasks, progress: Progress
) -> Iterator[tuple[Group, list[tuple[Cell, str]]]]:
    """Yield groups with their failed cells, once they have run; bases come before fine-tunings."""
    run = RunGroup(folder.resolve(), device)
    running = Running(groups, progress)
    with tasks.listening(running.hear):
        for tuned in (False, True):
            stage = iter([group for group in groups if group.tuned == tuned])
            for group, failed in tasks.as_finished(run, partial(next, stage, None), running.report):
                running.end(group)
                yield group, failed
