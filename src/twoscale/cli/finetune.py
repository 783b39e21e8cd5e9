"""The command that fine-tunes a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli import options
from twoscale.cli.names import FINETUNING, OBJECTIVES
from twoscale.cli.terminal import is_quiet


def finetune(
    run: Annotated[Path, typer.Argument(help="A run whose predictor has weights to train.")],
    out: options.OutRun,
    objective: Annotated[
        str,
        typer.Option(help=", ".join(OBJECTIVES) + ".", autocompletion=options.one_of(OBJECTIVES)),
    ] = FINETUNING["objective"],
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Passes over the training set.")
    ] = FINETUNING["epochs"],
    warm_up: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="First epochs, which train on the reconstruction only."
        ),
    ] = FINETUNING["warm_up"],
    ramp: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Epochs in which the other terms grow to full weight."
        ),
    ] = FINETUNING["ramp"],
    data: options.OtherData = None,
    memory: options.Memory = None,
    device: options.Device = "auto",
    resume: options.Resume = True,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Train a run's predictor further on an objective of the decoded field; PCAs stay frozen.

    \b
    Examples:
      twoscale finetune runs/a --objective A3 --out runs/b
    """
    from twoscale.cli.display import print_metrics, progress_bar, show_metrics
    from twoscale.cli.fit import print_next
    from twoscale.cli.paths import PAIRS, RUN, expect
    from twoscale.report.run_page import illustrate_run
    from twoscale.run import Run, finetune_run
    from twoscale.runtime.memory import parse_size

    expect(RUN, run)
    expect(PAIRS, data)
    base = Run.open(run, device=device)
    before = base.metrics
    dataset = base.open_data(data) if data else base.dataset
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
    if json or is_quiet():
        show_metrics({objective: tuned.metrics}, json, "", out)
        return
    if not base.fitted_on(dataset):
        before = base.evaluate(dataset, samples=tuned.test_samples)
    rows = {base.surrogate.method: before, f"+ {objective}": tuned.metrics}
    print_metrics(rows, title=f"{out}: fine-tuned from {run}, time cumulative")
    print_next([tuned], out)
