"""The command that fits a surrogate: one method, several seeds, or a search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twoscale.cli.display import (
    print_json,
    print_search,
    progress_bar,
    search_bars,
    show_metrics,
)
from twoscale.cli.next_steps import print_next
from twoscale.cli.options import (
    DeviceOption,
    JsonOption,
    MemoryOption,
    OutOption,
    OverwriteOption,
    ResumeOption,
    SeedOption,
)
from twoscale.data import Dataset
from twoscale.errors import TwoscaleError
from twoscale.methods.settings import parse_assignments, parse_seeds
from twoscale.report.run_page import illustrate_run
from twoscale.run import auto_run, fit_runs
from twoscale.runtime.memory import parse_size
from twoscale.runtime.timing import parse_duration
from twoscale.search import DEFAULT_BUDGET
from twoscale.surrogate import METHODS

_AUTO = "auto"  # in place of a method: search for one


def fit(
    data: Annotated[Path, typer.Argument(help="A dataset.")],
    out: OutOption,
    method: Annotated[
        str, typer.Option(help=", ".join((_AUTO, *METHODS)) + "; auto searches for the best.")
    ] = _AUTO,
    budget: Annotated[
        str | None,
        typer.Option(
            help=f"Time of a search, such as 90s, 2min or 1h; {DEFAULT_BUDGET:.0f}s by default."
        ),
    ] = None,
    seed: SeedOption = 0,
    seeds: Annotated[
        str | None,
        typer.Option(help="Several seeds, such as 0-4 or 0,3; each gets a folder in OUT."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value; see the docs for the keys.")
    ] = None,
    train_samples: Annotated[
        int | None, typer.Option(min=2, help="Use only this many training samples.")
    ] = None,
    memory: MemoryOption = None,
    device: DeviceOption = "auto",
    resume: ResumeOption = True,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Fit a surrogate, evaluate it on the test split, and write a run folder."""
    options: dict[str, Any] = {
        "settings": parse_assignments(settings or []),
        "training_samples": train_samples,
        "memory": parse_size(memory) if memory else None,
        "device": device,
        "overwrite": overwrite,
        "resume": resume,
    }
    if method == _AUTO:
        if seeds is not None:
            raise TwoscaleError(
                "a search is for one seed: search with --seed, then fit the --method and settings "
                "it finds with --seeds"
            )
        _search(Dataset(data), out, parse_duration(budget or DEFAULT_BUDGET), seed, options, json)
        return
    if budget is not None:
        raise TwoscaleError(f"--budget is the time of a search: drop it, or --method {method}")
    several = None if seeds is None else {k: out / f"seed-{k}" for k in parse_seeds(seeds)}
    with progress_bar(method) as progress:
        runs = fit_runs(
            Dataset(data),
            several or {seed: out},
            method=method,
            progress=progress,
            illustrate=illustrate_run,
            **options,
        )
    title = f"{out}: test split of {data}"
    if several is None:
        show_metrics({method: runs[0].metrics}, json, title)
    elif json:
        print_json({"runs": {run.path.name: run.metrics for run in runs}})
    else:
        labels = [f"{method} {k}" for k in several]
        show_metrics({k: run.metrics for k, run in zip(labels, runs, strict=True)}, json, title)
    if not json:
        print_next(runs, out)


def _search(
    data: Dataset, out: Path, budget: float, seed: int, options: dict[str, Any], json: bool
) -> None:
    """Fit what a search finds, and show how it was found."""
    with search_bars() as progress:
        run = auto_run(
            data,
            out,
            budget=budget,
            seed=seed,
            progress=progress,
            illustrate=illustrate_run,
            **options,
        )
    if not json:
        print_search(run.search or {})
    show_metrics({run.surrogate.method: run.metrics}, json, f"{out}: test split of {data.path}")
    if not json:
        print_next([run])
