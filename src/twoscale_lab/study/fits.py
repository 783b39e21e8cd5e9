"""How the cells of a group are fitted, searched for or fine-tuned, each into its run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
