"""The command that fits a surrogate: one method, several seeds, or a search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import warn

import typer

from twoscale.cli import options
from twoscale.cli.names import METHODS, PREDICTORS, SEARCH_SECONDS
from twoscale.cli.workers import in_every_process
from twoscale.errors import TwoscaleError, TwoscaleWarning

if TYPE_CHECKING:
    from twoscale.run import Run

_AUTO = "auto"  # in place of a method: search for one


@in_every_process
def fit(
    out: Annotated[
        Path,
        typer.Option(
            metavar="RUN",
            help="Where the result goes: a new run folder; with --seeds, a folder of runs.",
        ),
    ],
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DATA",
            help="A dataset; a file or folder of fields; the input's and the output's file.",
        ),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="The training data, in place of DATA.", metavar="DATA")
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            help="Another dataset or file, to test on all of it; DATA is then split 0.9/0.1/0.",
            metavar="DATA",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Training/validation/test samples: shares such as 0.8/0.1/0.1 (the default), or "
            "numbers such as 800/100/100.",
            metavar="A/B/C",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help=", ".join((_AUTO, *METHODS)) + "; auto searches for the best one.",
            autocompletion=options.one_of((_AUTO, *METHODS)),
        ),
    ] = _AUTO,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"Time of a search, such as 90s, 2min or 1h; {SEARCH_SECONDS:.0f}s by default.",
        ),
    ] = None,
    seed: options.Seed = 0,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="SEEDS", help="Several seeds, such as 0-4 or 0,3; each gets a folder in --out."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, such as epochs=200; may be repeated. The docs list the keys. "
            f"Values of predictor: {', '.join(PREDICTORS)}.",
            autocompletion=options.complete_setting,
        ),
    ] = None,
    train_samples: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Use only this many training samples.")
    ] = None,
    *,
    layout: options.GridLayout,
    memory: options.Memory = None,
    scheduler: options.Scheduler = None,
    device: options.Device = "auto",
    resume: options.Resume = True,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Fit a surrogate, measure it on test samples, and write a run folder with a report.

    \b
    Examples:
      twoscale fit pairs.npz --input a --output u --out runs/mine --budget 1min
      twoscale fit data/p64.zarr --method two-scale --out runs/b --set epochs=200
    """
    from twoscale.cli.display import progress_bar
    from twoscale.cli.paths import PAIRS, expect
    from twoscale.cli.workers import workers_at
    from twoscale.data import Shares
    from twoscale.data.check import layout_findings
    from twoscale.data.direct import open_with_test
    from twoscale.methods.settings import parse_assignments, parse_seeds
    from twoscale.report.run_page import illustrate_run
    from twoscale.run import RunRequest, auto_run, fit_runs
    from twoscale.runtime.memory import parse_size
    from twoscale.runtime.processes import is_first
    from twoscale.runtime.progress import parse_duration

    files = _one_of(data, train)
    expect(PAIRS, *files, test)
    choices: dict[str, Any] = {
        "settings": parse_assignments(settings or []),
        "training_samples": train_samples,
        "shares": Shares.parse(split) if split else None,
        "memory": parse_size(memory) if memory else None,
        "device": device,
        "overwrite": overwrite,
        "resume": resume,
        "illustrate": illustrate_run,
    }
    dataset, choices["test"] = open_with_test(options.one_or_all(files), test, layout.reading())
    for finding in layout_findings(dataset):
        warn(finding.text, TwoscaleWarning, stacklevel=2)
    searches = method == _AUTO
    if searches and seeds is not None:
        raise TwoscaleError(
            "a search is for one seed: search with --seed, then fit the --method and settings it "
            "finds with --seeds"
        )
    if budget is not None and not searches:
        raise TwoscaleError(f"--budget is the time of a search: drop it, or --method {method}")
    seconds = parse_duration(budget or SEARCH_SECONDS)
    several = {} if seeds is None else {k: out / f"seed-{k}" for k in parse_seeds(seeds)}
    label, over = ("search", "seconds") if searches else (method, None)
    with (
        progress_bar(label, over=over) as progress,
        workers_at(scheduler, None if searches else progress) as workers,
    ):
        choices |= {"progress": progress, "workers": workers}
        if searches:
            runs = [auto_run(dataset, out, budget=seconds, seed=seed, **choices)]
        else:
            names = ("settings", "training_samples", "shares")
            asked = {name: choices.pop(name) for name in names}
            outs = several or {seed: out}
            requests = [RunRequest(place, method, k, **asked) for k, place in outs.items()]
            runs = fit_runs(dataset, requests, **choices)
    if is_first():
        _show(runs, out, list(several), json)


def _show(runs: Sequence[Run], out: Path, seeds: Sequence[int], json: bool) -> None:
    """Show how a run was found, the metrics of all runs, and what to do next."""
    from twoscale.cli.display import print_json, print_search, show_metrics

    if json and seeds:
        print_json({"out": str(out), "runs": {run.path.name: run.metrics for run in runs}})
        return
    if runs[0].search and not json:
        print_search(runs[0].search)
    labels = [f"{runs[0].surrogate.method} {seed}" for seed in seeds] or [runs[0].surrogate.method]
    rows = {label: run.metrics for label, run in zip(labels, runs, strict=True)}
    show_metrics(rows, json, _title(runs[0]), out)
    if not json:
        print_next(runs, out)


def _one_of(data: list[Path] | None, train: Path | None) -> list[Path]:
    """Return the dataset or files that are given as arguments or as an option."""
    given = [one for one in (data, train and [train]) if one]
    if len(given) != 1:
        raise TwoscaleError(
            f"a fit is on one dataset, got {len(given)}: name it as DATA or with --train"
        )
    return given[0]


def _title(run: Run) -> str:
    """Return which samples the metrics of a run are measured on."""
    part = run.metrics["measured_on"]
    where = run.config[
        "test_dataset" if part == "test" and "test_dataset" in run.config else "dataset"
    ]
    remark = "" if part == "test" else ", because there are no test samples"
    return f"{run.path}: {part} split of {where['path']}{remark}"


def print_next(runs: Sequence[Run], folder: Path) -> None:
    """Print what to do next with a run, or with those of several seeds in a folder."""
    from twoscale.cli.terminal import say
    from twoscale.report.run_commands import compare_command, next_commands
    from twoscale.report.run_record import read_run
    from twoscale.surrogate.artifact import PAGE

    steps = next_commands(read_run(runs[0], look=False))
    if len(runs) > 1:
        steps[0] = ("Compare the seeds.", compare_command(folder))
    elif not (runs[0].path / PAGE).exists():
        del steps[0]  # a warning has told why there is none
    print("Next:")
    for words, command in steps:
        say(words)
        print(f"    {command}")
