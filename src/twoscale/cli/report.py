"""The command that turns runs into a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twoscale.cli import options

if TYPE_CHECKING:
    from twoscale.report.run_record import RunRecord


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Runs, or folders of runs such as several seeds.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the result goes: a new page; report.html in the folder by default.",
        ),
    ] = None,
    data: options.OtherData = None,
    device: options.Device = "auto",
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write a page on runs: errors in pictures, numbers, what to do next.

    The page needs no other file and no network.

    \b
    Examples:
      twoscale report runs/a
      twoscale report runs/a runs/b --out compared.html
    """
    from twoscale.cli.display import print_outcome, progress_bar
    from twoscale.cli.paths import PAIRS, RUNS, expect
    from twoscale.cli.terminal import say
    from twoscale.report.run_report import find_runs, write_run_report

    expect(PAIRS, data)
    expect(RUNS, *paths)
    runs = list(dict.fromkeys(run for path in paths for run in find_runs(path)))
    with progress_bar("report") as progress:
        page, shown = write_run_report(
            runs,
            out,
            data=data,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    if not json:
        for name, run in shown.items():
            for suggestion in run.suggestions[:1]:
                say(f"{name}: {suggestion.text}")
    content = {"runs": {name: _numbers(run) for name, run in shown.items()}}
    print_outcome(str(page), page, content, json=json)


def _numbers(run: RunRecord) -> dict[str, Any]:
    """Return the numbers of a run's page that are worth reading by a program."""
    from twoscale.report.run_commands import suggested_command

    samples = run.samples
    some = None if samples is None else samples.finite
    return {
        "path": str(run.path),
        "method": run.surrogate.method,
        "mean_relative_l2": run.error,
        **{name: run.metrics.get(name) for name in ("mre", "oracle_mre", "training_mre")},
        "fit_seconds": run.fit_seconds,
        "prediction_seconds": run.prediction_seconds,
        "shares": run.findings.shares if run.findings else None,
        "samples": 0 if samples is None else len(samples.errors),
        "worst_sample": None if samples is None or samples.worst is None else samples.worst.number,
        "worst_error": None if some is None or not len(some) else float(some.max()),
        "suggestions": [
            {"text": one.text, "command": suggested_command(run, one)} for one in run.suggestions
        ],
    }
