"""The command that measures speed."""

from __future__ import annotations

from typing import Annotated

import typer

from twoscale.cli.completion import one_of
from twoscale.cli.names import BENCHMARKS, SCALES
from twoscale.cli.options import DeviceOption, JsonOption, ScaleOption, SchedulerOption


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help=f"{', '.join(BENCHMARKS)}; all of them by default.",
            autocompletion=one_of(BENCHMARKS),
        ),
    ] = None,
    scale: ScaleOption = SCALES[0],
    device: DeviceOption = "auto",
    scheduler: SchedulerOption = None,
    json: JsonOption = False,
) -> None:
    """Measure our speed against named peers, on the same data in the same run.

    With --scheduler the benchmark scaling compares workers with this process alone.
    """
    from twoscale.bench import Setup, run_benchmarks
    from twoscale.cli.display import print_comparisons, print_json, progress_bar
    from twoscale.cli.scheduling import workers_at
    from twoscale.surrogate.artifact import environment
    from twoscale.surrogate.options import resolve_device, shared_device

    where = resolve_device(shared_device(scheduler, device))
    with progress_bar() as progress, workers_at(scheduler) as workers:
        setup = Setup(where, scale, progress, workers)
        results = list(run_benchmarks(names or [], setup))
    if json:
        found = [result.as_dict() for result in results]
        print_json({"results": found, "environment": environment(setup.device)})
    else:
        print_comparisons(results)
