"""A run of the surrogate that a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, split_samples
from twoscale.files import claimed, new_folder, write_json
from twoscale.methods.recipes import trains_on_fields
from twoscale.run.folder import SEARCH, Illustrate, Run, run_config, write_run
from twoscale.run.pairs import loaded_pairs, stored_pairs, whole_fields_refused
from twoscale.runtime.memory import available_memory
from twoscale.runtime.progress import Progress
from twoscale.runtime.timing import now
from twoscale.search import DEFAULT_BUDGET, fit_auto
from twoscale.surrogate.artifact import declared_processes, is_replaceable
from twoscale.surrogate.fitting import kept_checkpoints
from twoscale.surrogate.options import resolve_device

_USUAL = "two-scale"


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

    The run is one of the method that was found; `search.json` tells how. The test split has no part
    in the choice. Loading counts towards the budget. Fields that would take more than half of the
    `memory` are read on every pass, and no encoder is tried on them. An interruption ends the
    search with the best surrogate so far. One that was killed goes on, with the time it had left,
    unless `resume` is false.
    """
    start = now()
    split = split_samples(dataset.samples, seed=seed, training=training_samples)
    stored = dataset.nbytes > (memory or available_memory()) // 2
    if stored and memory and trains_on_fields(_USUAL, settings or {}):
        raise whole_fields_refused(dataset, f"{_USUAL} with an encoder")
    declared_processes()  # raises if it is none
    with claimed(out, overwrite=overwrite, may_replace=is_replaceable) as output:
        asked = {
            "dataset": dataset.identity,
            "budget": budget,
            "seed": seed,
            "settings": dict(settings or {}),
            "training_samples": len(split.training),
        }
        kept = kept_checkpoints(output.work, asked, device=resolve_device(device), resume=resume)
        pairs = stored_pairs(dataset, split) if stored else loaded_pairs(dataset, split, progress)
        training, validation, test = pairs
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
        write_run(output.content, surrogate, test, split, config, progress, illustrate)
        output.commit()
    return Run(Path(out), surrogate, config)
