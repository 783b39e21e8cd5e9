"""A run of the surrogate that a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, split_samples
from twoscale.files import claimed, new_folder, write_json
from twoscale.predictors import get_predictor
from twoscale.run.folder import SEARCH, Fitted, Illustrate, Run, run_config, write_run
from twoscale.run.pairs import reads_on_each_pass, split_pairs, whole_fields_refused
from twoscale.runtime.progress import Progress
from twoscale.runtime.timing import now
from twoscale.search import DEFAULT_BUDGET, fit_auto
from twoscale.surrogate.artifact import is_replaceable
from twoscale.surrogate.fitting import kept_checkpoints
from twoscale.surrogate.options import declared_processes, resolve_device


def auto_run(
    dataset: Dataset,
    out: str | Path,
    *,
    budget: float | str = DEFAULT_BUDGET,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    training_samples: int | None = None,
    device: str = "auto",
    memory: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
) -> Run:
    """Search for the best surrogate within a time budget and write its run folder.

    The run is like one of `fit_run`; `search.json` records the search. The test split has no part
    in the choice. Loading counts towards the budget. Fields that would take more than half of the
    `memory` are read on every pass, and no predictor that reads whole fields is tried on them. An
    interruption ends the search with the best surrogate so far. A search that was killed goes on
    with the time that was left, unless `resume` is false.
    """
    start = now()
    split = split_samples(dataset.samples, seed=seed, training=training_samples)
    stored = reads_on_each_pass(dataset, memory)
    predictor = (settings or {}).get("predictor")
    if stored and memory and predictor and get_predictor(str(predictor)).reads_fields:
        raise whole_fields_refused(dataset, f"predictor={predictor}")
    declared_processes()  # raises if the variable is wrong
    with claimed(out, overwrite=overwrite, may_replace=is_replaceable) as output:
        asked = {
            "dataset": dataset.identity,
            "budget": budget,
            "seed": seed,
            "settings": dict(settings or {}),
            "training_samples": len(split.training),
        }
        kept = kept_checkpoints(output.work, asked, device=resolve_device(device), resume=resume)
        training, validation, test = split_pairs(dataset, split, stored=stored, progress=progress)
        found = fit_auto(
            *training,
            validation=validation,
            budget=budget,
            seed=seed,
            device=device,
            problem=dataset.problem,
            progress=progress,
            start=start,
            journal_folder=kept.folder,
            **(settings or {}),
        )
        surrogate = found.surrogate
        config = run_config(dataset, surrogate, len(split.training))
        new_folder(output.content)
        write_json(output.content / SEARCH, found.record)
        fitted = Fitted(Path(out), surrogate, config, split, training, test)
        write_run(output.content, fitted, progress, illustrate)
        output.commit()
    return Run(Path(out), surrogate, config)
