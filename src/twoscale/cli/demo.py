"""The demonstration: seams, and what removes them, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twoscale.cli.display import progress_bar
from twoscale.data import generate
from twoscale.errors import TwoscaleError
from twoscale.problems import Poisson
from twoscale.report.comparison import write_comparison
from twoscale.report.run_figures import illustrate_run
from twoscale.run import fit_run
from twoscale.surrogate.arguments import resolve_device

DEMO_METHODS = ("local", "overlap", "two-scale")
RESOLUTION = 64
_DATA = f"poisson-{RESOLUTION}.zarr"
_OWN = {_DATA, f"{_DATA}.partial", "runs", "figures", "report.html"}


def run_demo(
    out: Path, *, samples: int, epochs: int, seed: int, device: str
) -> dict[str, dict[str, Any]]:
    """Generate data, fit three methods, write `report.html`; return the metrics by method."""
    if out.exists() and not (out.is_dir() and {path.name for path in out.iterdir()} <= _OWN):
        raise TwoscaleError(f"{out} holds something else: choose another --out")
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
    runs = {}
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
    write_comparison(out / "report.html", dataset, runs)
    return {method: run.metrics for method, run in runs.items()}
