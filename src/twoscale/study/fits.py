"""How the cells of a group are fitted, searched for or fine-tuned, each into its run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from twoscale.data import Dataset
from twoscale.errors import TwoscaleError
from twoscale.files import Checkpoints, remove
from twoscale.linalg.pca import SOLVERS
from twoscale.representation import PatchPCA
from twoscale.run import Request, Run, auto_run, finetune_run, fit_requests
from twoscale.runtime.progress import Progress
from twoscale.search.policy import INTERRUPTED
from twoscale.study.cells import Cell
from twoscale.study.folder import StudyFolder

OnError = Callable[[Cell, Exception], None]
Work = Callable[[Dataset, Sequence[Cell], StudyFolder, str, Progress, OnError], None]


def warm_up(device: str) -> None:
    """Solve small PCAs: the first fit's time should not include the start of libraries."""
    fields = torch.rand(64, 1, 16, 16, generator=torch.Generator().manual_seed(0)).to(device)
    for solver in SOLVERS:
        PatchPCA(0.9, patches=(2, 2), solver=solver).fit(fields)


def fit_cells(
    dataset: Dataset,
    cells: Sequence[Cell],
    folder: StudyFolder,
    device: str,
    progress: Progress,
    fail: OnError,
    *,
    checkpoints: Checkpoints | None,
    options: Mapping[str, Any],
) -> None:
    """Fit cells that have the same number of training fields, each into its run folder."""
    places = {folder.cell(cell): cell for cell in cells}
    requests = [
        Request(
            place, cell.case.method, cell.seed, cell.settings, _training(cell), calibrates=False
        )
        for place, cell in places.items()
    ]
    fit_requests(
        dataset,
        requests,
        device=device,
        progress=progress,
        on_error=lambda request, error: fail(places[request.out], error),
        checkpoints=checkpoints,
        **options,
    )


def _training(cell: Cell) -> int | None:
    """Return how many samples train; None for all that validation leaves of the dataset."""
    return None if cell.tests else cell.training


def search_cells(
    dataset: Dataset,
    cells: Sequence[Cell],
    folder: StudyFolder,
    device: str,
    progress: Progress,
    fail: OnError,
    *,
    options: Mapping[str, Any],
) -> None:
    """Search for surrogates of cells, each into its run folder; the budget limits their time.

    A search keeps checkpoints of its own beside the run folder.
    """
    for cell in cells:
        try:
            run = auto_run(
                dataset,
                folder.cell(cell),
                seed=cell.seed,
                training_samples=_training(cell),
                device=device,
                calibrates=False,
                progress=progress,
                **cell.settings,
                **options,
            )
        except Exception as error:
            fail(cell, error)
            continue
        if run.search is not None and run.search["stopped"] == INTERRUPTED:
            remove(run.path)  # the best so far is not what the budget finds
            raise KeyboardInterrupt


def tune_cells(
    dataset: Dataset,
    cells: Sequence[Cell],
    folder: StudyFolder,
    device: str,
    progress: Progress,
    fail: OnError,
) -> None:
    """Fine-tune cells from the run folders of their bases."""
    for cell in cells:
        base = cell.base
        assert base is not None
        assert cell.finetuning is not None
        try:
            if not folder.has_run(base):
                raise TwoscaleError(f"there is no {base.name} to fine-tune: it failed before")
            run = Run.open(folder.cell(base), device=device)
            finetune_run(run, folder.cell(cell), data=dataset, progress=progress, **cell.finetuning)
        except Exception as error:
            fail(cell, error)
