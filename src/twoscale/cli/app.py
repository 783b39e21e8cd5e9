"""The commands. Each one reads its arguments, calls the library, and shows the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twoscale._version import __version__
from twoscale.cli.bench import bench
from twoscale.cli.data import check, generate, import_
from twoscale.cli.demo import RESOLUTION, run_demo
from twoscale.cli.display import (
    print_json,
    print_metrics,
    print_search,
    progress_bar,
    search_bars,
)
from twoscale.cli.group import Commands
from twoscale.cli.options import (
    DeviceOption,
    JsonOption,
    MemoryOption,
    OutOption,
    OverwriteOption,
    ResumeOption,
    SeedOption,
)
from twoscale.cli.predict import predict
from twoscale.cli.report import report
from twoscale.cli.study import study_app
from twoscale.data import Dataset
from twoscale.errors import TwoscaleError
from twoscale.finetuning.finetune import OBJECTIVES, FinetunePlan
from twoscale.methods.settings import parse_assignments, parse_seeds
from twoscale.report.run_figures import illustrate_run
from twoscale.run import Run, auto_run, finetune_run, fit_runs
from twoscale.runtime.memory import parse_size
from twoscale.runtime.timing import parse_duration
from twoscale.search import DEFAULT_BUDGET
from twoscale.surrogate import METHODS

_AUTO = "auto"  # in place of a method: search for one

app = typer.Typer(
    cls=Commands,
    help="Small, fast surrogates of PDE solution operators by two-scale localised PCA.",
    epilog="First steps: [bold]twoscale demo[/bold]",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

app.add_typer(study_app, name="study")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"twoscale {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from, in any command.")
    ] = False,
) -> None:
    pass  # --debug is taken out of the arguments before they come here


@app.command(epilog="Example: twoscale demo --out demo")
def demo(
    out: OutOption = Path("demo"),
    samples: Annotated[int, typer.Option(min=500, help="Poisson-64 samples.")] = 4000,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per method.")] = 150,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Make data, fit three methods, and show seams and their removal. About a minute, offline."""
    metrics = run_demo(
        out, samples=samples, epochs=epochs, seed=seed, device=device, overwrite=overwrite
    )
    if json:
        print_json(metrics)
        return
    print_metrics(metrics, title=f"Poisson-{RESOLUTION}, {samples} samples, {epochs} epochs")
    print(f"Pictures of the seams and their removal: {out / 'report.html'}")


app.command(
    epilog="Example: twoscale generate poisson --resolution 64 --samples 2500 --out data/p64.zarr"
)(generate)
app.command(
    "import",
    epilog="Examples: twoscale import pairs.npz --input a --output u --out data/mine.zarr · "
    "twoscale import flow.h5 --input vx,vy --parameters viscosity --output p --out data/flow.zarr",
)(import_)
app.command(epilog="Examples: twoscale check data/p64.zarr · twoscale check runs/a")(check)


@app.command(
    epilog="Examples: twoscale fit data/p64.zarr --out runs/a --budget 1min · "
    "twoscale fit data/p64.zarr --method two-scale --out runs/b --set epochs=200"
)
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
        _show({method: runs[0].metrics}, json, title)
    elif json:
        print_json({"runs": {run.path.name: run.metrics for run in runs}})
    else:
        labels = [f"{method} {k}" for k in several]
        _show({k: run.metrics for k, run in zip(labels, runs, strict=True)}, json, title)


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
    _show({run.surrogate.method: run.metrics}, json, f"{out}: test split of {data.path}")


@app.command(epilog="Example: twoscale finetune runs/a --objective A3 --out runs/b")
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


@app.command(epilog="Example: twoscale evaluate runs/a --data data/other.zarr --json")
def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    data: Annotated[
        Path | None, typer.Option(help="Another dataset with the same channels and grids.")
    ] = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Measure a run on its test split, or on all samples of another dataset."""
    opened = Run.open(run, device=device)
    metrics = opened.evaluate(Dataset(data) if data else None)
    if opened.search and not json:
        print(opened.search["explanation"][0])
    _show({opened.surrogate.method: metrics}, json, f"{run} on {data or 'its test split'}")


app.command(
    epilog="Examples: twoscale predict runs/a input.npy --out prediction.npy · "
    "twoscale predict runs/b --parameters parameters.npy --out prediction.npy"
)(predict)
app.command(epilog="Example: twoscale report studies")(report)
app.command(epilog="Example: twoscale bench train --json")(bench)


def _show(rows: dict[str, dict[str, Any]], json: bool, title: str) -> None:
    if json:
        print_json(next(iter(rows.values())))
    else:
        print_metrics(rows, title=title)
