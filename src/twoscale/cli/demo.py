"""The demonstration: seams, and what removes them, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from twoscale.cli.display import (
    COLUMNS_NOTE,
    console,
    metric_cells,
    metrics_header,
    print_metrics,
    progress_bar,
)
from twoscale.data import Dataset, generate
from twoscale.errors import TwoscaleError
from twoscale.problems import Poisson
from twoscale.report import figures
from twoscale.report.page import Picture, Table, write_page
from twoscale.report.run_figures import illustrate_run
from twoscale.run import Run, fit_run
from twoscale.surrogate.methods import METHODS
from twoscale.surrogate.surrogate import resolve_device

DEMO_METHODS = ("local", "overlap", "two-scale")
_RESOLUTION = 64


def run_demo(out: Path, *, samples: int, epochs: int, seed: int, device: str) -> None:
    """Generate data, fit three methods, print the table and write `report.html`."""
    if out.exists() and any(out.iterdir()) and not (out / "report.html").exists():
        raise TwoscaleError(f"{out} holds something else: choose another --out")
    with progress_bar() as progress:
        dataset = generate(
            Poisson(),
            out / f"poisson-{_RESOLUTION}.zarr",
            resolution=_RESOLUTION,
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
    metrics = {method: run.metrics for method, run in runs.items()}
    print_metrics(metrics, title=f"Poisson-{_RESOLUTION}, {samples} samples, {epochs} epochs")
    page = out / "report.html"
    _write_report(page, dataset, runs, metrics)
    console.print(f"Pictures of the seams and their removal: {page}")


def _write_report(
    page: Path, dataset: Dataset, runs: dict[str, Run], metrics: dict[str, dict[str, Any]]
) -> None:
    test = runs["local"].test_samples
    inputs, truth = dataset.load("input", test), dataset.load("output", test)
    predictions = {method: run.surrogate.predict(inputs) for method, run in runs.items()}
    rows = [[METHODS[method].title, *metric_cells(metrics[method])] for method in runs]
    pictures = _pictures(runs, metrics, inputs, truth, predictions)
    place = page.parent / "figures"
    place.mkdir(exist_ok=True)
    for picture in pictures:
        figures.save(picture.figure, place / f"{picture.name}.png")
    write_page(
        page,
        title="Seams at patch borders, and their removal",
        summary=_summary(metrics),
        table=Table(metrics_header(), rows, COLUMNS_NOTE),
        pictures=pictures,
        footer=_footer(dataset, runs),
    )


def _summary(metrics: dict[str, dict[str, Any]]) -> str:
    local, two_scale = (
        {**metrics[name], **metrics[name]["common_seams"]} for name in ("local", "two-scale")
    )
    ratios = {
        key: local[key] / two_scale[key]
        for key in ("mre", "value_trace_error", "normal_derivative_trace_error")
    }
    return (
        "A plain patch-wise PCA-Net decodes each patch by itself, and neighbouring patches "
        "disagree. The two-scale representation writes one coarse field over the whole domain "
        "first and leaves only small residuals to the patches. On this test set that makes the "
        f"error {ratios['mre']:.1f} times smaller, the jump in value across patch borders "
        f"{ratios['value_trace_error']:.1f} times, and the jump in slope "
        f"{ratios['normal_derivative_trace_error']:.1f} times."
    )


def _pictures(
    runs: dict[str, Run],
    metrics: dict[str, dict[str, Any]],
    inputs: Tensor,
    truth: Tensor,
    predictions: dict[str, Tensor],
) -> list[Picture]:
    sample = figures.median_sample(predictions["local"], truth)
    layout = runs["local"].surrogate.operator_.layout
    assert layout is not None
    seams = layout.seams
    common = {
        title: {method: metrics[method]["common_seams"][key] for method in runs}
        for title, key in (
            ("value across seams", "value_trace_error"),
            ("slope across seams", "normal_derivative_trace_error"),
        )
    }
    common = {"relative error": {method: metrics[method]["mre"] for method in runs}} | common
    return [
        Picture(
            "fields",
            "One field, three predictions",
            "Top: a test field (the one with plain local's median error) and its predictions. "
            "Bottom: their errors on one scale, with the patch borders drawn in.",
            figures.field_panels(inputs, truth, predictions, sample, seams),
        ),
        Picture(
            "residuals",
            "Where the equation is violated",
            "The size of the PDE residual of the same predictions. Seams are lines in it.",
            figures.residual_panels(Poisson(), inputs, predictions, sample),
        ),
        Picture(
            "profile",
            "Across the seams",
            "The error along one row of nodes; dashed lines are patch borders.",
            figures.seam_profile(truth, predictions, sample, seams),
        ),
        Picture(
            "errors",
            "Over the whole test set",
            "Relative error, and the mean errors of the jumps in value and slope across seams.",
            figures.bars(common),
        ),
        Picture(
            "spectra",
            "Energy by scale",
            "Mean radial energy spectra: what each method adds or loses at small scales.",
            figures.spectra(truth, predictions),
        ),
        Picture(
            "densities",
            "Values",
            "The density of all values of all test fields.",
            figures.densities(truth, predictions),
        ),
    ]


def _footer(dataset: Dataset, runs: dict[str, Run]) -> str:
    run = runs["two-scale"]
    made = run.surrogate.device.type
    hashes = ", ".join(f"{name} {run.config['hash']}" for name, run in runs.items())
    return (
        f"Poisson-{_RESOLUTION}, {dataset.samples} samples, data {dataset.identity}; "
        f"configurations {hashes}; device {made}."
    )
