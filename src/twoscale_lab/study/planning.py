"""StudyPlan a study: which cells are left to run, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from twoscale.files import content_digest
from twoscale.predictors import CodePredictor
from twoscale_lab.study.cells import Cell, Data, passes
from twoscale_lab.study.folder import StudyFolder

_COST_PER_SECOND = 1e8  # of a search, whose time is known; others are counted by their work


@dataclass(frozen=True)
class Group:
    """Cells that are fitted together, or one that is fine-tuned or searched for.

    The name stays the same when some of the cells are finished: it is that of the checkpoints.
    """

    data: Data
    cells: tuple[Cell, ...]
    name: str

    @property
    def tuned(self) -> bool:
        return self.cells[0].finetuning is not None

    @property
    def searches(self) -> bool:
        return self.cells[0].searches

    @property
    def tests(self) -> tuple[Data, ...]:
        """Return the datasets that the cells are tested on; none for parts of their own."""
        return self.cells[0].tests

    @property
    def cost(self) -> float:
        """Return a rough measure of its time, from which the time left is estimated."""
        return sum(_cost(cell) for cell in self.cells)


@dataclass(frozen=True)
class StudyPlan:
    """The cells asked for, which of them are finished, and the groups that are to be run.

    Groups may hold cells that were not asked for: the base of a cell that is fine-tuned, and all
    other cells that are fine-tuned from the same base. `finished` names groups without such cells.
    """

    cells: list[Cell]
    done: list[Cell]
    groups: list[Group] = field(default_factory=list)
    finished: frozenset[str] = frozenset()

    @property
    def pending(self) -> list[Cell]:
        finished = {cell.key for cell in self.done}
        return [cell for cell in self.cells if cell.key not in finished]


def make_plan(
    folder: StudyFolder,
    cells: Iterable[Cell],
    *,
    others: Iterable[Cell] = (),
    alone: Collection[str] = (),
) -> StudyPlan:
    """Return the plan that finishes these cells in a folder.

    To fine-tune a base whose run folder is gone, the base is fitted again. Then everything that
    was fine-tuned from it is fine-tuned again, `others` included: a pair compares one network
    before and after. `alone` holds the keys of cells that are trained by themselves, so that no
    other training shares their time.
    """
    unique = {cell.key: cell for cell in cells}
    finished = {cell.key: cell for cell in others if folder.result(cell) is not None}
    todo = {key: cell for key, cell in unique.items() if folder.result(cell) is None}
    bases = [cell.base for cell in todo.values() if cell.base is not None]
    todo |= {base.key: base for base in bases if not folder.has_run(base)}
    again = (unique | finished).values()
    todo |= {cell.key: cell for cell in again if cell.base and cell.base.key in todo}
    done = [cell for cell in unique.values() if cell.key not in todo]
    groups = _groups(todo.values(), alone)
    names = {group.name for group in _groups(done, alone)} - {group.name for group in groups}
    return StudyPlan(list(unique.values()), done, groups, frozenset(names))


def _groups(cells: Iterable[Cell], alone: Collection[str]) -> list[Group]:
    """Return groups of cells, dataset by dataset: first fits, then fine-tunings.

    Networks on codes are trained together. A network on fields takes long, and so does a
    fine-tuning: each is a group of its own, after which the record is updated.
    """
    datasets: dict[Data, dict[tuple, list[Cell]]] = {}
    for cell in cells:
        by_itself = not cell.on_codes or cell.key in alone
        stage = 2 if cell.finetuning is not None else int(by_itself)
        kind = (stage, cell.key if stage else (cell.training, cell.tests))
        datasets.setdefault(cell.data, {}).setdefault(kind, []).append(cell)
    return [
        Group(data, tuple(groups[kind]), _name(data, kind))
        for data, groups in datasets.items()
        for kind in sorted(groups, key=lambda kind: (kind[0], groups[kind][0].seed))
    ]


def _name(data: Data, kind: tuple) -> str:
    """Return the name of the group of one kind on a dataset."""
    stage, rest = kind
    if stage:
        return str(rest)  # the cell's key
    training, tests = rest
    content = {"data": data.name, "training": training, "tests": [one.name for one in tests]}
    return content_digest(content)[:16]


def _cost(cell: Cell) -> float:
    """Return the number of samples that pass through networks, larger ones weighing more."""
    if cell.searches:
        return _COST_PER_SECOND * float(cell.settings["budget"])
    if cell.finetuning is not None:
        return 500.0 * cell.finetuning["epochs"] * cell.training
    parts = [part for part in (cell.parts.predictor, cell.parts.correction) if part is not None]
    return cell.training * sum(_sample_cost(part, cell.case.resolution) for part in parts)


def _sample_cost(part: CodePredictor, resolution: int) -> float:
    """Return what fitting a predictor costs per training sample."""
    epochs = passes(part.arguments.get("epochs"))
    if part.closed_form or not epochs:
        return 1000.0
    return epochs * (float(resolution**2) if part.reads_fields else 100.0)
