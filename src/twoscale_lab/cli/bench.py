"""The command that measures speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from twoscale.cli import options
from twoscale_lab.cli.study import ScaleOption
from twoscale_lab.names import BENCHMARKS

if TYPE_CHECKING:
    from twoscale_lab.bench import Comparison


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help=f"{', '.join(BENCHMARKS)}; all of them by default.",
            autocompletion=options.one_of(BENCHMARKS),
        ),
    ] = None,
    scale: ScaleOption = "paper",
    device: options.Device = "auto",
    scheduler: options.Scheduler = None,
    json: options.Json = False,
) -> None:
    """Measure our speed against named peers, on the same data in the same run.

    With --scheduler the benchmark scaling compares workers with this process alone.

    \b
    Examples:
      twoscale bench train --json
    """
    from twoscale.cli.display import print_json, progress_bar
    from twoscale.cli.workers import workers_at
    from twoscale.surrogate.artifact import environment
    from twoscale.surrogate.options import resolve_device, shared_device
    from twoscale_lab.bench import Setup, run_benchmarks

    where = resolve_device(shared_device(scheduler, device))
    with progress_bar() as progress, workers_at(scheduler) as workers:
        setup = Setup(where, scale, progress, workers)
        results = list(run_benchmarks(names or [], setup))
    if json:
        found = [result.as_dict() for result in results]
        print_json({"results": found, "environment": environment(setup.device)})
    else:
        print_comparisons(results)


def print_comparisons(results: Sequence[Comparison]) -> None:
    """Print one row per benchmark: ours, the peer's, the ratio with its spread, the agreement."""
    from twoscale.cli.terminal import print_table

    rows = []
    for result in results:
        *start, ratio, agreement = result.texts
        low, high = result.spread
        rows.append([*start, f"{ratio} ({low:.3g} to {high:.3g})", agreement])
    headings = ("benchmark", "peer", "ours", "peer's", "ratio (spread)", "agreement")
    print_table(headings, rows, words=len(headings))
