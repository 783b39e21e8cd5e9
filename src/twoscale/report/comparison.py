"""The page of `demo`: the seams of patch-wise methods on one test set, and their removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from twoscale.data import Dataset
from twoscale.fields.measures import median_sample
from twoscale.report import figures, tables
from twoscale.report.figure_folder import write_with_figures
from twoscale.report.method_looks import method_title
from twoscale.report.page import Picture, Section, Table, page_text
from twoscale.report.run_samples import input_fields
from twoscale.run import Run
from twoscale.run.pairs import loaded_pair
from twoscale.study.paper.roles import IDEA, PLAIN_PATCHES, PROPOSED


def write_comparison(
    page: Path, dataset: Dataset, runs: dict[str, Run], *, overwrite: bool = False
) -> None:
    """Write `page` and its `figures/*.png` from runs of both roles of the paper and others."""
    pair = loaded_pair(dataset, runs[PLAIN_PATCHES].test_samples)
    inputs, truth = (samples.tensor() for samples in pair)
    predictions = {
        method: run.surrogate.predict_fields(inputs).cpu() for method, run in runs.items()
    }
    metrics = {method: run.metrics for method, run in runs.items()}
    names = figures.channel_names(dataset.output_space)
    pictures = _field_pictures(dataset, runs, inputs, truth, predictions)
    pictures += _test_set_pictures(metrics, truth, predictions, names)
    rows = [[method_title(method), *tables.cells(metrics[method])] for method in runs]
    table = Table.of_text(tables.header(), rows, note=tables.NOTE)
    text = page_text(
        title="Seams at patch borders, and their removal",
        summary=[_summary(metrics)],
        sections=[Section("", tables=[table], pictures=pictures)],
        footer=_footer(dataset, runs),
    )
    write_with_figures(page, text, pictures, kinds=("png",), overwrite=overwrite)


def _summary(metrics: dict[str, dict[str, Any]]) -> str:
    plain, proposed = (
        {**metrics[name], **metrics[name]["common_seams"]} for name in (PLAIN_PATCHES, PROPOSED)
    )
    ratios = {
        key: plain[key] / proposed[key]
        for key in ("mre", "value_trace_error", "normal_derivative_trace_error")
    }
    return (
        f"{IDEA} On this test set that makes the "
        f"error {ratios['mre']:.1f} times smaller, the jump in value across patch borders "
        f"{ratios['value_trace_error']:.1f} times, and the jump in slope "
        f"{ratios['normal_derivative_trace_error']:.1f} times."
    )


def _field_pictures(
    dataset: Dataset,
    runs: dict[str, Run],
    inputs: Tensor,
    truth: Tensor,
    predictions: dict[str, Tensor],
) -> list[Picture]:
    """Return the pictures of one sample, the one with the median error of plain patches."""
    sample = median_sample(predictions[PLAIN_PATCHES], truth)
    layout = runs[PLAIN_PATCHES].surrogate.operator_.layout
    assert layout is not None
    names, problem = figures.channel_names(dataset.output_space), dataset.problem
    shown = input_fields(dataset.input_space, inputs)
    pictures = [
        Picture(
            "fields",
            "One field, its predictions",
            f"Top: a test field (of median error with {method_title(PLAIN_PATCHES)}) and its "
            "predictions. "
            "Bottom: their errors on one scale, with the patch borders drawn in.",
            figures.field_panels(shown, truth, predictions, sample, layout.seams, names),
        ),
        Picture(
            "profile",
            "Across the seams",
            "The error along one row of nodes; dashed lines are patch borders.",
            figures.seam_profile(truth, predictions, sample, layout.seams, names),
        ),
    ]
    if problem is not None:
        residuals = Picture(
            "residuals",
            "Where the equation is violated",
            "The size of the PDE residual of the same predictions. Seams are lines in it.",
            figures.residual_panels(problem, inputs, predictions, sample),
        )
        pictures.insert(1, residuals)
    return pictures


def _test_set_pictures(
    metrics: dict[str, dict[str, Any]],
    truth: Tensor,
    predictions: dict[str, Tensor],
    names: figures.Names,
) -> list[Picture]:
    quantities = {"relative error": {method: values["mre"] for method, values in metrics.items()}}
    for title, key in (
        ("value across seams", "value_trace_error"),
        ("slope across seams", "normal_derivative_trace_error"),
    ):
        quantities[title] = {m: values["common_seams"][key] for m, values in metrics.items()}
    return [
        Picture(
            "errors",
            "Over the whole test set",
            "Relative error, and the mean errors of the jumps in value and slope across seams.",
            figures.bars(quantities),
        ),
        Picture(
            "spectra",
            "Energy by scale",
            "Mean radial energy spectra: what each method adds or loses at small scales.",
            figures.spectra(truth, predictions, names),
        ),
        Picture(
            "densities",
            "Values",
            "The density of all values of all test fields.",
            figures.densities(truth, predictions, names),
        ),
    ]


def _footer(dataset: Dataset, runs: dict[str, Run]) -> str:
    hashes = ", ".join(f"{name} {run.config['hash']}" for name, run in runs.items())
    device = next(iter(runs.values())).surrogate.device.type
    return (
        f"{dataset.samples} samples on {dataset.output_space} nodes, data {dataset.identity}; "
        f"configurations {hashes}; device {device}."
    )
