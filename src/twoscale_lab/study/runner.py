"""Run the cells of studies, each once, in groups: an interruption loses one group at most."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.fields.workers import Tasks
from twoscale.files.work_folder import discard
from twoscale.runtime.progress import Progress
from twoscale.surrogate.options import resolve_device
from twoscale_lab.study.catalogue import asked_cells, own_definition
from twoscale_lab.study.cells import Cell
from twoscale_lab.study.datasets import OpenDatasets, open_dataset
from twoscale_lab.study.definition import Scale, Study
from twoscale_lab.study.folder import StudyFolder, StudyRecord, read_record
from twoscale_lab.study.groups import run_group, wait_for_lock, warm_up
from twoscale_lab.study.on_workers import run_groups
from twoscale_lab.study.planning import Group, StudyPlan, make_plan
from twoscale_lab.study.samples import write_fields


@dataclass(frozen=True)
class StudyOutcome:
    """What running a study did: the plan it began with, its record, and the cells that failed."""

    plan: StudyPlan
    record: dict[str, Any]
    path: Path

    @property
    def failed(self) -> list[dict[str, Any]]:
        keys = {cell.key for group in self.plan.groups for cell in group.cells}
        return [entry for entry in self.record["failed"] if entry["key"] in keys]


def run_study(study: Study, out: str | Path, **options: Any) -> StudyOutcome:
    """Run the unfinished cells of one study; see `run_studies`."""
    return run_studies([study], out, **options)[study.name]


def run_studies(
    studies: Sequence[Study],
    out: str | Path,
    *,
    scale: Scale = "paper",
    seeds: Sequence[int] | None = None,
    only: Collection[str] = (),
    device: str = "auto",
    resume: bool = True,
    workers: Tasks | None = None,
    progress: Progress | None = None,
) -> dict[str, StudyOutcome]:
    """Run the unfinished cells of several studies together, and write their records.

    `seeds` replaces the studies' own seeds; `only` names the methods to run. A cell that fails is
    recorded and does not stop the others; it is tried again the next time. Fits that were stopped
    continue from their last checkpoints, unless `resume` is false. Each group of cells keeps its
    own in the folder. With `workers` groups are their tasks; they must see the same folder.
    """
    folder, report = StudyFolder(out), progress or (lambda *_: None)
    chosen, scaled = str(resolve_device(device)), [study.at(scale) for study in studies]
    asked = asked_cells(studies, scale, seeds=seeds, only=only)
    with folder.locked():
        records = [
            _open_record(study, scale, folder, cells)
            for study, cells in zip(scaled, asked, strict=True)
        ]
        pairs = [
            (s, cell) for s, record in zip(scaled, records, strict=True) for cell in record.cells
        ]
        alone = {cell.key for study, cell in pairs if cell.seed in study.alone}
        plan = partial(make_plan, folder, others=[cell for _, cell in pairs], alone=alone)
        plans = [plan(cells) for cells in asked]
        datasets = OpenDatasets(partial(open_dataset, folder, chosen), hold=True)
        runner = _Runner(records, folder, chosen, report, datasets)
        together = plan([cell for cells in asked for cell in cells])
        runner.discard_checkpoints(together, resume=resume)
        runner.run(together, device, workers)
        fresh = {cell.key for group in together.groups for cell in group.cells}
        for study, record in zip(scaled, records, strict=True):
            write_fields(
                folder,
                study,
                record.cells,
                fresh=fresh,
                open_data=lambda data: datasets([data], report)[0],
                device=chosen,
            )
        return {
            study.name: StudyOutcome(plan, record.write(), record.file)
            for study, record, plan in zip(scaled, records, plans, strict=True)
        }


def _open_record(
    study: Study, scale: Scale, folder: StudyFolder, asked: Iterable[Cell]
) -> StudyRecord:
    """Return the record of a study in a folder, with what failed in the earlier one."""
    file = folder.record(study.name)
    old = read_record(file) if file.exists() else None
    if old is not None and old["scale"] != scale:
        raise TwoscaleError(
            f"{file} is a record at the {old['scale']} scale: choose another path for the "
            f"{scale} scale"
        )
    command = f"twoscale study run {study.name} --scale {scale}"
    head = {"study": study.name, "scale": scale, "command": command, **own_definition(study)}
    failed = {entry["key"]: entry for entry in (old or {}).get("failed", [])}
    return StudyRecord(file, head, _recorded_cells(study, asked, old), folder, failed)


@dataclass(frozen=True)
class _Runner:
    """Runs a plan's groups and keeps the records up to date."""

    records: Sequence[StudyRecord]
    folder: StudyFolder
    device: str
    progress: Progress
    datasets: OpenDatasets

    def run(self, plan: StudyPlan, workers_device: str, workers: Tasks | None) -> None:
        """Run a plan's groups, here or as tasks of workers; write the records after each.

        For workers the device "auto" is what each of them has.
        """
        if plan.groups and workers is None:
            warm_up(self.device)
        clock = TimeLeft(plan.groups)
        total = sum(len(group.cells) for group in plan.groups)
        done = 0
        if total:
            self.progress("cells", done, total, clock.remark())
        groups = self._here(plan) if workers is None else self._there(plan, workers_device, workers)
        for group in groups:
            clock.finish(group)
            done += len(group.cells)
            self.progress("cells", done, total, clock.remark() if done < total else "")

    def discard_checkpoints(self, plan: StudyPlan, *, resume: bool) -> None:
        """Remove what is left of groups that are finished; without `resume`, all there is."""
        for name in plan.finished:
            discard(self.folder.group(name))
        if not resume:
            for group in plan.groups:
                discard(self.folder.group(group.name), wait=wait_for_lock(self.progress))
                for cell in group.cells:  # fine-tunings and searches
                    discard(self.folder.cell(cell))

    def _here(self, plan: StudyPlan) -> Iterator[Group]:
        """Yield the groups of a plan once they have run in this process."""
        for group in plan.groups:
            try:
                run_group(
                    group,
                    self.folder,
                    self.device,
                    datasets=self.datasets,
                    progress=self.progress,
                    note=self._note,
                )
            finally:  # an interrupted group may have finished some of its cells
                self._write()
            yield group

    def _there(self, plan: StudyPlan, device: str, workers: Tasks) -> Iterator[Group]:
        """Yield the groups of a plan once workers have run them; datasets are made here."""
        for data in dict.fromkeys(one for g in plan.groups for one in (g.data, *g.tests)):
            with suppress(TwoscaleError):  # the cells that need it say what is wrong
                open_dataset(self.folder, self.device, data, self.progress)
        for group, failed in run_groups(
            plan.groups, self.folder.path, device, workers, self.progress
        ):
            for cell in group.cells:
                if self.folder.has_run(cell):
                    self._note(cell, None)
                    self.folder.fresh_result(cell)
            for cell, error in failed:
                self._note(cell, error)
            self._write()
            yield group

    def _write(self) -> None:
        for record in self.records:
            record.write()

    def _note(self, cell: Cell, error: str | None) -> None:
        for record in self.records:
            record.note(cell, error)


class TimeLeft:
    """An estimate of the time that the remaining groups take, from the time of those done."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.start = time.monotonic()
        self.left = sum(group.cost for group in groups)
        self.done = 0.0

    def finish(self, group: Group) -> None:
        """Count a group as done."""
        self.left -= group.cost
        self.done += group.cost

    def remark(self) -> str:
        """Return the time left in words; nothing before the first group is done."""
        if not self.done:
            return ""
        seconds = (time.monotonic() - self.start) * self.left / self.done
        if seconds < 90:
            return f"about {max(1, round(seconds))} s left"
        return f"about {round(seconds / 60)} min left"


def _recorded_cells(study: Study, asked: Iterable[Cell], old: dict[str, Any] | None) -> list[Cell]:
    """Return the cells a record may hold: those of the study, of `asked` and of the old record."""
    seeds = [(cell.case.id, cell.seed) for cell in asked]
    seeds += [(cell["case"], cell["seed"]) for cell in (old or {}).get("cells", [])]
    return [
        study.protocol.cell(row.case, seed)
        for row in study.rows()
        for seed in sorted({*row.seeds, *(seed for case, seed in seeds if case == row.case.id)})
    ]
