"""The command that fine-tunes a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli.display import print_json, print_metrics, progress_bar
from twoscale.cli.next_steps import print_next
from twoscale.cli.options import (
    DeviceOption,
    JsonOption,
    MemoryOption,
    OutOption,
    OverwriteOption,
    ResumeOption,
)
from twoscale.data import Dataset
from twoscale.finetuning.finetune import OBJECTIVES, FinetunePlan
from twoscale.report.run_page import illustrate_run
from twoscale.run import Run, finetune_run
from twoscale.runtime.memory import parse_size


def finetune(
    run: Annotated[Path, typer.Argument(help="A run whose outputs are PCA codes.")],
    out: OutOption,
    objective: Annotated[str, typer.Option(help=", ".join(OBJECTIVES))] = FinetunePlan.objective,
    epochs: Annotated[
        int, typer.Option(min=1, help="Passes over the training set.")
    ] = FinetunePlan.epochs,
    warm_up: Annotated[
        int, typer.Option(min=0, help="First epochs, on the reconstruction error alone.")
    ] = FinetunePlan.warm_up,
    ramp: Annotated[
        int, typer.Option(min=0, help="Epochs in which the other terms grow to full weight.")
    ] = FinetunePlan.ramp,
    data: Annotated[
        Path | None, typer.Option(help="Another dataset with the same channels and grids.")
    ] = None,
    memory: MemoryOption = None,
    device: DeviceOption = "auto",
    resume: ResumeOption = True,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Fine-tune a run's predictor on an objective of the assembled field; the PCA stays frozen."""
    base = Run.open(run, device=device)
    before = base.metrics
    dataset = Dataset(data) if data else base.dataset
    with progress_bar(objective) as progress:
        tuned = finetune_run(
            base,
            out,
            objective=objective,
            epochs=epochs,
            warm_up=warm_up,
            ramp=ramp,
            data=dataset,
            memory=parse_size(memory) if memory else None,
            overwrite=overwrite,
            resume=resume,
            progress=progress,
            illustrate=illustrate_run,
        )
    if json:
        print_json(tuned.metrics)
        return
    if not base.fitted_on(dataset):
        before = base.evaluate(dataset, samples=tuned.test_samples)
    rows = {base.surrogate.method: before, f"+ {objective}": tuned.metrics}
    print_metrics(rows, title=f"{out}: fine-tuned from {run}, time cumulative")
    print_next([tuned])
