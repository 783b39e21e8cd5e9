"""How the cells of a group are fitted, searched for or fine-tuned, each into its run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from twoscale.data import Dataset
from twoscale.errors import TwoscaleError
from twoscale.files import Checkpoints, remove
from twoscale.math.pca import SOLVERS
from twoscale.representation import PatchPCA
from twoscale.run import Run, RunRequest, auto_run, finetune_run, fit_runs
from twoscale.runtime.progress import Progress
from twoscale.search.policy import INTERRUPTED
from twoscale_lab.study.cells import Cell
from twoscale_lab.study.folder import StudyFolder


def warm_up(device: str) -> None:
    """Solve small PCAs: the first fit's time should not include the start of libraries."""
    fields = torch.rand(64, 1, 16, 16, generator=torch.Generator().manual_seed(0)).to(device)
    for solver in SOLVERS:
        PatchPCA(0.9, patches=(2, 2), solver=solver).fit(fields)


@dataclass(frozen=True)
class GroupWork:
    """Cells that run on one dataset, each into its run folder.

    A cell that fails is told to `fail`, and the others still run. `options` are those of runs that
    are tested on datasets of their own.
    """

    dataset: Dataset
    cells: Sequence[Cell]
    folder: StudyFolder
    device: str
    progress: Progress
    fail: Callable[[Cell, Exception], None]
    options: Mapping[str, Any]

    def fit(self, checkpoints: Checkpoints | None = None) -> None:
        """Fit the cells, which have the same number of training fields."""
        places = {self.folder.cell(cell): cell for cell in self.cells}
        requests = [
            RunRequest(
                place, cell.case.method, cell.seed, cell.settings, _training(cell), calibrates=False
            )
            for place, cell in places.items()
        ]
        fit_runs(
            self.dataset,
            requests,
            device=self.device,
            progress=self.progress,
            on_error=lambda request, error: self.fail(places[request.out], error),
            checkpoints=checkpoints,
            **self.options,
        )

    def search(self) -> None:
        """Search for surrogates of the cells; the budget limits their time.

        A search keeps checkpoints of its own beside the run folder.
        """
        for cell in self.cells:
            try:
                run = auto_run(
                    self.dataset,
                    self.folder.cell(cell),
                    seed=cell.seed,
                    training_samples=_training(cell),
                    device=self.device,
                    calibrates=False,
                    progress=self.progress,
                    **cell.settings,
                    **self.options,
                )
            except Exception as error:
                self.fail(cell, error)
                continue
            if run.search is not None and run.search["stopped"] == INTERRUPTED:
                remove(run.path)  # the best so far is not what the budget finds
                raise KeyboardInterrupt

    def tune(self) -> None:
        """Fine-tune the cells from the run folders of their bases."""
        for cell in self.cells:
            try:
                self._tune(cell)
            except Exception as error:
                self.fail(cell, error)

    def _tune(self, cell: Cell) -> None:
        base, place = cell.base, self.folder.cell(cell)
        assert base is not None
        assert cell.finetuning is not None
        if not self.folder.has_run(base):
            raise TwoscaleError(f"there is no {base.name} to fine-tune: it failed before")
        run = Run.open(self.folder.cell(base), device=self.device)
        finetune_run(run, place, data=self.dataset, progress=self.progress, **cell.finetuning)


def _training(cell: Cell) -> int | None:
    """Return how many samples train; None for all that validation leaves of the dataset."""
    return None if cell.tests else cell.training
