"""Run the cells of studies, each once, in groups: an interruption loses one group at most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from twoscale.data import Dataset
from twoscale.errors import TwoscaleError
from twoscale.fields.workers import Tasks
from twoscale.files.work_folder import discard
from twoscale.runtime.memory import available_memory
from twoscale.runtime.progress import Progress
from twoscale.surrogate.options import resolve_device
from twoscale_lab.study.catalogue import asked_cells, own_definition
from twoscale_lab.study.cells import Cell, Data
from twoscale_lab.study.datasets import open_dataset
from twoscale_lab.study.definition import Scale, Study
from twoscale_lab.study.fits import warm_up
from twoscale_lab.study.folder import StudyFolder, make_record, read_record, write_record
from twoscale_lab.study.groups import run_group, wait_for_lock
from twoscale_lab.study.logs import TimeLeft
from twoscale_lab.study.on_workers import run_groups
from twoscale_lab.study.planning import Group, Plan, make_plan
from twoscale_lab.study.samples import write_fields


@dataclass(frozen=True)
class Outcome:
    """What running a study did: the plan it began with, its record, and the cells that failed."""

    plan: Plan
    record: dict[str, Any]
    path: Path

    @property
    def failed(self) -> list[dict[str, Any]]:
        keys = {cell.key for group in self.plan.groups for cell in group.cells}
        return [entry for entry in self.record["failed"] if entry["key"] in keys]


def run_study(study: Study, out: str | Path, **options: Any) -> Outcome:
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
) -> dict[str, Outcome]:
    """Run the unfinished cells of several studies together, and write their records.

    `seeds` replaces the studies' own seeds; `only` names the methods to run. A cell that fails is
    recorded and does not stop the others; it is tried again the next time. Fits that were stopped
    continue from their last checkpoints, unless `resume` is false. Each group of cells keeps its
    own in the folder. With `workers` groups are their tasks; they must see the same folder.
    """
    folder = StudyFolder(out)
    records = [_GrowingRecord(study.at(scale), scale, folder) for study in studies]
    for record, cells in zip(
        records, asked_cells(studies, scale, seeds=seeds, only=only), strict=True
    ):
        record.asked = cells
    chosen = str(resolve_device(device))
    with folder.locked():
        for record in records:
            record.open()
        alone = {cell.key for record in records for cell in record.alone}
        others = [cell for record in records for cell in record.cells]
        plan = partial(make_plan, folder, others=others, alone=alone)
        plans = [plan(record.asked) for record in records]
        running = _Runner(records, folder, chosen, device, progress or _silent)
        together = plan([cell for record in records for cell in record.asked])
        running.discard_checkpoints(together, resume=resume)
        running.run(together, workers)
        return {
            record.study.name: Outcome(plan, record.write(), folder.record(record.study.name))
            for record, plan in zip(records, plans, strict=True)
        }


class _GrowingRecord:
    """A study's record while the study runs, and the cells that were asked for."""

    def __init__(self, study: Study, scale: Scale, folder: StudyFolder) -> None:
        self.study, self.scale, self.folder = study, scale, folder
        self.asked: list[Cell] = []
        self.cells: list[Cell] = []
        self.failed: dict[str, dict[str, Any]] = {}

    @property
    def alone(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.seed in self.study.alone]

    def open(self) -> None:
        """Read the earlier record, if there is one."""
        old = self._old_record()
        self.cells = _recorded_cells(self.study, self.asked, old)
        self.failed = {entry["key"]: entry for entry in (old or {}).get("failed", [])}

    def _old_record(self) -> dict[str, Any] | None:
        file = self.folder.record(self.study.name)
        old = read_record(file) if file.exists() else None
        if old is not None and old["scale"] != self.scale:
            raise TwoscaleError(
                f"{file} is a record at the {old['scale']} scale: choose another path for the "
                f"{self.scale} scale"
            )
        return old

    def note(self, cell: Cell, error: str | None) -> None:
        """Remember the error of a cell that failed; None for one that did not."""
        if error is None:
            self.failed.pop(cell.key, None)
        elif any(cell.key == one.key for one in self.cells):
            entry = {"case": cell.case.id, "seed": cell.seed, "key": cell.key}
            self.failed[cell.key] = entry | {"error": error}

    def write(self) -> dict[str, Any]:
        """Write the record of the cells finished so far, and return it."""
        found = [(cell, self.folder.result(cell)) for cell in self.cells]
        finished = [(cell, result) for cell, result in found if result is not None]
        known = {cell.key for cell, _ in finished}
        record = make_record(
            finished,
            [entry for key, entry in self.failed.items() if key not in known],
            study=self.study.name,
            scale=self.scale,
            command=f"twoscale study run {self.study.name} --scale {self.scale}",
            **own_definition(self.study),
        )
        write_record(self.folder.record(self.study.name), record)
        return record


class _Runner:
    """Runs a plan's groups and keeps the records up to date."""

    def __init__(
        self,
        records: Sequence[_GrowingRecord],
        folder: StudyFolder,
        device: str,
        device_of_workers: str,
        progress: Progress,
    ) -> None:
        self.records, self.folder = records, folder
        self.device = device
        self.device_of_workers = device_of_workers  # "auto" is what each of them has
        self.progress = progress
        self.opened: dict[Data, Dataset] = {}

    def run(self, plan: Plan, workers: Tasks | None) -> None:
        """Run a plan's groups, here one after the other; write the records after each."""
        if plan.groups and workers is None:
            warm_up(self.device)
        clock = TimeLeft(plan.groups)
        total = sum(len(group.cells) for group in plan.groups)
        done = 0
        if total:
            self.progress("cells", done, total, clock.remark())
        for group in self._groups(plan, workers):
            clock.finish(group)
            done += len(group.cells)
            self.progress("cells", done, total, clock.remark() if done < total else "")
        fresh = {cell.key for group in plan.groups for cell in group.cells}
        for record in self.records:
            write_fields(
                self.folder,
                record.study,
                record.cells,
                fresh=fresh,
                open_data=partial(self._dataset, progress=self.progress),
                device=self.device,
            )

    def discard_checkpoints(self, plan: Plan, *, resume: bool) -> None:
        """Remove what is left of groups that are finished; without `resume`, all there is."""
        for name in plan.finished:
            discard(self.folder.group(name))
        if not resume:
            for group in plan.groups:
                discard(self.folder.group(group.name), wait=wait_for_lock(self.progress))
                for cell in group.cells:  # fine-tunings and searches
                    discard(self.folder.cell(cell))

    def _groups(self, plan: Plan, workers: Tasks | None) -> Iterator[Group]:
        """Yield the groups of a plan once they have run."""
        if workers is None:
            for group in plan.groups:
                try:
                    self._run(group)
                finally:  # an interrupted group may have finished some of its cells
                    self._write()
                yield group
            return
        for data in dict.fromkeys(one for g in plan.groups for one in (g.data, *g.tests)):
            with suppress(TwoscaleError):  # the cells that need it say what is wrong
                open_dataset(self.folder, data, self.device, self.progress)
        for group, failed in run_groups(
            plan.groups, self.folder.path, self.device_of_workers, workers, self.progress
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

    def _run(self, group: Group) -> None:
        run_group(
            group,
            self.folder,
            self.device,
            datasets=partial(self._datasets, (group.data, *group.tests)),
            progress=self.progress,
            note=self._note,
        )

    def _note(self, cell: Cell, error: str | None) -> None:
        for record in self.records:
            record.note(cell, error)

    def _datasets(self, wanted: Sequence[Data], progress: Progress) -> list[Dataset]:
        """Return datasets, generated if they are not there yet.

        They stay open for the groups that follow, in memory if they take less than a quarter of it.
        """
        for data in self.opened.keys() - set(wanted):
            del self.opened[data]  # before the next one is in memory
        for data in wanted:
            if data not in self.opened:
                dataset = open_dataset(self.folder, data, self.device, progress)
                self.opened[data] = dataset
                if dataset.nbytes < available_memory() // 4:
                    dataset.cache()
        return [self.opened[data] for data in wanted]

    def _dataset(self, data: Data, progress: Progress) -> Dataset:
        (dataset,) = self._datasets([data], progress)
        return dataset


def _recorded_cells(study: Study, asked: Iterable[Cell], old: dict[str, Any] | None) -> list[Cell]:
    """Return the cells a record may hold: those of the study, of `asked` and of the old record."""
    seeds = [(cell.case.id, cell.seed) for cell in asked]
    seeds += [(cell["case"], cell["seed"]) for cell in (old or {}).get("cells", [])]
    return [
        study.protocol.cell(row.case, seed)
        for row in study.rows()
        for seed in sorted({*row.seeds, *(seed for case, seed in seeds if case == row.case.id)})
    ]


def _silent(stage: str, done: int, total: int, remark: str) -> None:
    pass
