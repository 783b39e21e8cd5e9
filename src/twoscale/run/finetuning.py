"""A run fine-tuned into another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twoscale.data import Dataset, split_samples
from twoscale.errors import TwoscaleError
from twoscale.files import claimed, read_json, resolve_target
from twoscale.run.folder import Fitted, Illustrate, Run, run_config, write_run
from twoscale.run.pairs import reads_on_each_pass, scratch_in, split_pairs
from twoscale.runtime.progress import Progress
from twoscale.surrogate.artifact import MANIFEST, is_replaceable
from twoscale.surrogate.driver import kept_checkpoints
from twoscale.surrogate.options import declared_processes


def finetune_run(
    base: Run,
    out: str | Path,
    *,
    data: Dataset | None = None,
    memory: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
    **plan: Any,
) -> Run:
    """Fine-tune a run on its own training split (or that of other `data`) into a new run folder.

    `memory` is as for `fit_run`. Objectives that use whole fields in each step copy them to a
    scratch file if the memory is too small for them. A fine-tuning that was stopped goes on from
    its last checkpoint, unless `resume` is false.
    """
    if base.path.resolve().is_relative_to(resolve_target(out)):
        raise TwoscaleError(f"{out} holds the run that is fine-tuned: choose another path")
    dataset = data or base.dataset
    start = base.surrogate.with_problem(dataset.problem)
    start.check_spaces(dataset.input_space, dataset.output_space)
    shares, test = None, None
    if base.fitted_on(dataset):
        split, shares = base.split, base.config.get("split")
        test = base.test_dataset if "test_dataset" in base.config else None
    else:
        split = split_samples(dataset.samples, seed=start.seed, calibrates=True)
    keeps = start.finetuning_keeps_fields(**plan)
    stored = reads_on_each_pass(dataset, memory, test=test)
    declared_processes()  # raises if the variable is wrong
    with (
        claimed(out, overwrite=overwrite, may_replace=is_replaceable) as output,
        scratch_in(
            output.work, memory, stored=stored, fields=dataset if keeps else None
        ) as scratch,
    ):
        asked = {
            "dataset": dataset.identity,
            "base": read_json(base.path / MANIFEST)["checksum"],
            "training_samples": len(split.training),
            "plan": plan,
        }
        kept = kept_checkpoints(output.work, asked, device=start.device, resume=resume)
        pairs = split_pairs(dataset, split, stored=stored, test=test, progress=progress)
        surrogate = start.finetune(
            pairs.training.inputs,
            pairs.training.outputs,
            validation=pairs.validation,
            progress=progress,
            checkpoints=kept,
            scratch=scratch,
            **plan,
        )
        if surrogate.trust_ is not None:
            surrogate.learn_trust(pairs)
        config = run_config(
            dataset,
            surrogate,
            len(split.training),
            base=base.config["hash"],
            shares=shares,
            test=test,
        )
        fitted = Fitted(Path(out), surrogate, config, split, pairs, start.trust_ is not None)
        return write_run(output, fitted, progress, illustrate)
