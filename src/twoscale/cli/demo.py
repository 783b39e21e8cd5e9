"""The demonstration: seams, and what removes them, in about a minute."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twoscale.cli.options import DeviceOption, JsonOption, OverwriteOption, SeedOption
from twoscale.cli.quiet import is_quiet, print_answer
from twoscale.errors import TwoscaleError

if TYPE_CHECKING:
    from twoscale.run import Run

DEMO_METHODS = ("local", "overlap", "two-scale")
RESOLUTION = 64
_DATA = f"poisson-{RESOLUTION}.zarr"
_PAGE = "report.html"
_NOTE = "demo.json"  # says that a folder is a demo's, and whether it is finished
_FORMAT = "twoscale-demo"


def demo(
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Where the result goes: a folder of data, runs and a page."
        ),
    ] = Path("demo"),
    samples: Annotated[int, typer.Option(min=500, metavar="N", help="Poisson-64 samples.")] = 4000,
    epochs: Annotated[int, typer.Option(min=1, metavar="N", help="Epochs per method.")] = 150,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Make data, fit three methods, and show seams and their removal. About a minute, offline."""
    from twoscale.cli.display import print_json, print_metrics, say

    metrics = run_demo(
        out, samples=samples, epochs=epochs, seed=seed, device=device, overwrite=overwrite
    )
    if json:
        print_json({"out": str(out), "methods": metrics})
        return
    if is_quiet():
        print_answer(out)
        return
    print_metrics(metrics, title=f"Poisson-{RESOLUTION}, {samples} samples, {epochs} epochs")
    say(f"Pictures of the seams and their removal: {out / 'report.html'}")


def run_demo(
    out: Path, *, samples: int, epochs: int, seed: int, device: str, overwrite: bool = False
) -> dict[str, dict[str, Any]]:
    """Generate data, fit three methods, write `report.html`; return the metrics by method.

    A folder that holds anything must be a demo's. One that is finished is made anew only with
    `overwrite`; one that was interrupted goes on.
    """
    from twoscale.files import working
    from twoscale.report.figure_folder import check_page
    from twoscale.surrogate.options import resolve_device

    resolve_device(device)
    _check_folder(out, overwrite=overwrite)
    with working(out / "demo", subject=f"making a demo in {out}"):
        _check_folder(out, overwrite=overwrite)  # another demo may have finished meanwhile
        check_page(out / _PAGE, overwrite=True)
        _note(out, complete=False)
        runs = _make(out, samples=samples, epochs=epochs, seed=seed, device=device)
        _note(out, complete=True)
    return {method: run.metrics for method, run in runs.items()}


def _make(out: Path, *, samples: int, epochs: int, seed: int, device: str) -> dict[str, Run]:
    """Make data, runs and page in the demo's own folder, in place of earlier ones."""
    from twoscale.cli.display import progress_bar
    from twoscale.data import generate
    from twoscale.problems import Poisson
    from twoscale.report.comparison import write_comparison
    from twoscale.report.run_page import illustrate_run
    from twoscale.run import fit_run
    from twoscale.surrogate.options import resolve_device

    with progress_bar() as progress:
        dataset = generate(
            Poisson(),
            out / _DATA,
            resolution=RESOLUTION,
            samples=samples,
            seed=seed,
            device=resolve_device(device),
            overwrite=True,
            progress=progress,
        )
    runs: dict[str, Run] = {}
    for method in DEMO_METHODS:
        with progress_bar(method) as progress:
            runs[method] = fit_run(
                dataset,
                out / "runs" / method,
                method=method,
                seed=seed,
                settings={"epochs": epochs},
                device=device,
                overwrite=True,
                progress=progress,
                illustrate=illustrate_run,
            )
    write_comparison(out / _PAGE, dataset, runs, overwrite=True)
    return runs


def _check_folder(out: Path, *, overwrite: bool) -> None:
    """Raise if the demo must not write into a folder."""
    from twoscale.files import read_json

    try:
        if not os.path.lexists(out) or (out.is_dir() and all(map(_is_work, out.iterdir()))):
            return
        note = read_json(out / _NOTE)
    except TwoscaleError:
        note = {}
    except OSError as error:
        raise TwoscaleError(f"cannot write {out}: {error.strerror or error}") from error
    if note.get("format") != _FORMAT:
        raise TwoscaleError(f"{out} holds something else: choose another --out")
    if note.get("complete") and not overwrite:
        raise TwoscaleError(f"{out} exists already: choose another --out or pass --overwrite")


def _is_work(path: Path) -> bool:
    """Say whether something was left by a command that was killed."""
    from twoscale.files.work_folder import SUFFIX, is_work_folder

    return path.name.endswith(SUFFIX) and is_work_folder(path)


def _note(out: Path, *, complete: bool) -> None:
    from twoscale.files import atomic_output, write_json

    with atomic_output(out / _NOTE, overwrite=True) as prepared:
        write_json(prepared, {"format": _FORMAT, "complete": complete})
