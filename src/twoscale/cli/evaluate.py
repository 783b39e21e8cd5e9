"""The command that measures a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli import options

_GRIDS = ("resampled_from", "resampled_to")


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    data: options.OtherData = None,
    resample: options.Resample = False,
    per_sample: Annotated[
        bool, typer.Option("--per-sample", help="Add the error of each sample to the JSON.")
    ] = False,
    *,
    layout: options.PairLayout,
    scheduler: options.Scheduler = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Measure a run on its test split, or on all samples of another dataset or file.

    \b
    Examples:
      twoscale evaluate runs/a --data data/other.zarr --json
    """
    from twoscale.cli.display import show_metrics
    from twoscale.cli.paths import PAIRS, RUN, expect
    from twoscale.cli.terminal import say
    from twoscale.cli.workers import workers_at
    from twoscale.errors import TwoscaleError
    from twoscale.report.display import display, number
    from twoscale.run import Run
    from twoscale.surrogate.options import shared_device

    expect(RUN, run)
    expect(PAIRS, data)
    if per_sample and not json:
        raise TwoscaleError("--per-sample adds arrays to the JSON: pass --json as well")
    opened = Run.open(run, device=shared_device(scheduler, device))
    other = opened.open_data(data, layout.reading()) if data else None
    with workers_at(scheduler) as workers:
        metrics = opened.evaluate(
            other, resample=resample, per_sample=per_sample, times_solver=True, workers=workers
        )
    if opened.search and not json:
        say(opened.search["explanation"][0])
    part = metrics["measured_on"]
    measured = "all samples" if part == "all" else f"the {part} split"
    title = f"{run} on {measured} of {(other or opened.test_dataset).path}"
    if "resampled_from" in metrics:
        grids = ["x".join(map(str, metrics[key]["output"])) for key in _GRIDS]
        cost = number(metrics["interpolation_mre"], display("mre").kind)
        title += (
            f", measured on {grids[0]} nodes: predictions on {grids[1]} nodes are interpolated, "
            f"which alone costs {cost} %"
        )
    show_metrics({opened.surrogate.method: metrics}, json, title)
