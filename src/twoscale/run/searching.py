"""A run of the surrogate that a search finds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, Shares
from twoscale.fields.pairs import SplitData
from twoscale.fields.workers import Cluster
from twoscale.files import claimed
from twoscale.run.folder import Fitted, Illustrate, Run, run_config, write_run
from twoscale.run.pairs import (
    reads_on_each_pass,
    scratch_in,
    split_dataset,
    split_pairs,
)
from twoscale.runtime.processes import refuse_several
from twoscale.runtime.progress import Progress, now, parse_duration
from twoscale.search import DEFAULT_BUDGET, fit_auto
from twoscale.search.on_workers import memory_of_each
from twoscale.surrogate import Surrogate
from twoscale.surrogate.artifact import is_replaceable
from twoscale.surrogate.driver import kept_checkpoints
from twoscale.surrogate.options import declared_processes, resolve_device, shared_device

_FEW = 8  # test samples by which the time of the evaluation is estimated
_PAGE = 6.0  # seconds of writing the run and drawing its page
_SOLVER = 1.0  # seconds of comparing with the equation's solver
_MOST = 0.25  # of the budget is kept for what follows the search, at most


def auto_run(
    dataset: Dataset,
    out: str | Path,
    *,
    budget: float | str = DEFAULT_BUDGET,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    training_samples: int | None = None,
    shares: Shares | None = None,
    test: Dataset | None = None,
    device: str = "auto",
    memory: int | None = None,
    workers: Cluster | None = None,
    calibrates: bool = True,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
) -> Run:
    """Search for the best surrogate within a time budget and write its run folder.

    The run is like one of `fit_run`; `search.json` records the search. The test split has no part
    in the choice; `shares`, `test` and `calibrates` are as for `Request`. Loading counts towards
    the budget, and time is kept for the evaluation and the page.
    Fields that would take more than half of the `memory` are read on every pass; for predictors
    that read whole fields they are copied to a scratch file. With `workers` each of them fits one
    candidate at a time and loads the fields by itself; `memory` is that of each. An interruption
    ends the search with the best surrogate so far. A search that was killed goes on with the time
    that was left, unless `resume` is false.
    """
    refuse_several("a search runs", "fit one method, such as fno")
    start = now()
    split = split_dataset(
        dataset, test, seed=seed, training=training_samples, shares=shares, calibrates=calibrates
    )
    device = shared_device(workers, device)
    if workers is not None:
        memory = memory_of_each(workers, memory)
    large = reads_on_each_pass(dataset, memory, test=test)
    stored = large or workers is not None
    declared_processes()  # raises if the variable is wrong
    with (
        claimed(out, overwrite=overwrite, may_replace=is_replaceable) as output,
        scratch_in(output.work, memory, stored=large) as scratch,
    ):
        asked = {
            "dataset": dataset.identity,
            "budget": budget,
            "seed": seed,
            "settings": dict(settings or {}),
            "training_samples": len(split.training),
            "split": None if shares is None else str(shares),
            "test_dataset": None if test is None else test.identity,
        }
        kept = kept_checkpoints(output.work, asked, device=resolve_device(device), resume=resume)
        pairs = split_pairs(
            dataset, split, stored=stored, test=test, workers=workers, progress=progress
        )
        compares = calibrates and dataset.problem is not None
        fixed = (_PAGE if illustrate else 0.0) + (_SOLVER if compares else 0.0)
        found = fit_auto(
            pairs.training.inputs,
            pairs.training.outputs,
            validation=pairs.validation,
            calibration=pairs.calibration if calibrates else False,
            budget=budget,
            seed=seed,
            device=device,
            problem=dataset.problem,
            progress=progress,
            start=start,
            afterwards=_seconds_afterwards(pairs, parse_duration(budget), fixed),
            journal_folder=kept.folder,
            scratch=scratch,
            workers=workers,
            **(settings or {}),
        )
        surrogate = found.surrogate
        config = run_config(dataset, surrogate, len(split.training), shares=shares, test=test)
        fitted = Fitted(Path(out), surrogate, config, split, pairs, calibrates, found.record)
        return write_run(output, fitted, progress, illustrate)


def _seconds_afterwards(
    data: SplitData, budget: float, fixed: float
) -> Callable[[Surrogate], float]:
    """Return what estimates the seconds after a search: the evaluation, and `fixed` ones."""

    judging = data.test or data.validation

    def estimate(surrogate: Surrogate) -> float:
        few = judging.first(_FEW).loaded()
        start = now()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first candidate may be no better than zeros
            surrogate.with_problem(surrogate.problem).evaluate(few.inputs, few.outputs)
        each = (now() - start) / len(few)
        return min(_MOST * budget, each * len(judging) + fixed)

    return estimate
