"""Pictures of fields, their errors, seams, spectra and values; colour-blind safe, print size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from twoscale.errors import missing_extra
from twoscale.fields.measures import radial_spectrum
from twoscale.fields.patches import Seams
from twoscale.problems import Problem
from twoscale.report.method_looks import TRUTH, colour

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise missing_extra("matplotlib", "report") from error

_PANEL = 2.5  # inches

Predictions = Mapping[str, Tensor]  # method name -> one channel, (batch, height, width)


def field_panels(
    inputs: Tensor, truth: Tensor, predictions: Predictions, sample: int, seams: Seams
) -> Figure:
    """Draw one sample: truth above input, each prediction above its error with the seam lines.

    All errors share one colour scale, so that their sizes compare.
    """
    figure = _figure(1 + len(predictions), 2)
    axes = figure.subplots(2, 1 + len(predictions), squeeze=False)
    fields = {name: batch[sample].numpy() for name, batch in predictions.items()}
    draw_fields(axes, inputs[sample].numpy(), truth[sample].numpy(), fields, seams)
    return figure


def draw_fields(
    axes: np.ndarray,
    inputs: np.ndarray,
    truth: np.ndarray,
    predictions: Mapping[str, np.ndarray],
    seams: Seams,
) -> None:
    """Draw truth above input, and predictions above their errors, into two rows of axes."""
    inputs, truth = inputs.astype(np.float64), truth.astype(np.float64)
    # In double precision: squares and differences of single precision may be infinite.
    predictions = {name: field.astype(np.float64) for name, field in predictions.items()}
    errors = {name: field - truth for name, field in predictions.items()}
    worst = max(float(np.abs(error).max()) for error in errors.values()) or 1.0
    top = float(np.abs(truth).max()) or 1.0
    low = -top if truth.min() < 0 else 0.0
    image = _field(axes[0, 0], truth, TRUTH, vmin=low, vmax=top, cmap="viridis")
    _field(axes[1, 0], inputs, "input", cmap="cividis")
    for column, (name, error) in enumerate(errors.items(), 1):
        _field(axes[0, column], predictions[name], name, vmin=low, vmax=top, cmap="viridis")
        size = float(np.linalg.norm(truth))
        title = f"error, {100 * np.linalg.norm(error) / size:.2g} %" if size else "error"
        shown = _field(axes[1, column], error, title, vmin=-worst, vmax=worst, cmap="RdBu_r")
        _draw_seams(axes[1, column], seams)
    figure = axes[0, 0].figure
    figure.colorbar(image, ax=list(axes[0]), shrink=0.8)
    figure.colorbar(shown, ax=list(axes[1]), shrink=0.8)


def residual_panels(
    problem: Problem, inputs: Tensor, predictions: Predictions, sample: int
) -> Figure:
    """Draw |PDE residual| of each prediction on one logarithmic scale: seams show as lines."""
    part = slice(sample, sample + 1)
    residuals = {
        name: problem.residual(inputs[part].double(), fields[part].double())[0].abs().numpy()
        for name, fields in predictions.items()
    }
    top = max(float(np.quantile(values, 0.999)) for values in residuals.values()) or 1.0
    figure = _figure(len(residuals), 1)
    axes = figure.subplots(1, len(residuals), squeeze=False)[0]
    for axis, (name, values) in zip(axes, residuals.items(), strict=True):
        norm = matplotlib.colors.LogNorm(top / 1e3, top)
        image = _field(axis, np.maximum(values, top / 1e3), name, norm=norm, cmap="magma")
    figure.colorbar(image, ax=list(axes), shrink=0.8, label="|residual|")
    return figure


def seam_profile(truth: Tensor, predictions: Predictions, sample: int, seams: Seams) -> Figure:
    """Draw the error along a row through the middle of the patches; seams are dashed lines."""
    figure = _figure(3, 1)
    axis = figure.subplots()
    row = 3 * seams.rows[0] // 2 if seams.rows and seams.rows[0] else truth.shape[1] // 2
    for name, fields in predictions.items():
        error = (fields[sample, row] - truth[sample, row]).numpy()
        axis.plot(error, color=colour(name), label=name, linewidth=1.3)
    for column in seams.columns:
        axis.axvline(column - 0.5, color="0.6", linestyle="--", linewidth=0.8)
    axis.set(xlabel="column", ylabel=f"error in row {row}")
    axis.legend(frameon=False)
    return figure


def spectra(truth: Tensor, predictions: Predictions) -> Figure:
    """Draw the mean radial energy spectra of truth and predictions."""
    figure = _figure(2, 1.2)
    axis = figure.subplots()
    for name, fields in {TRUTH: truth, **predictions}.items():
        spectrum = radial_spectrum(fields[:, None].double())[:, 0].mean(0)[1:]
        waves = range(1, len(spectrum) + 1)
        axis.loglog(waves, spectrum, color=colour(name), label=name, linewidth=_width(name))
    axis.set(xlabel="radial wave number", ylabel="mean energy")
    axis.legend(frameon=False)
    return figure


def densities(truth: Tensor, predictions: Predictions) -> Figure:
    """Draw the densities of all values of truth and predictions."""
    figure = _figure(2, 1.2)
    axis = figure.subplots()
    low, high = float(truth.min()), float(truth.max())
    edges = np.linspace(low, high if high > low else low + max(1.0, abs(low)), 81)
    for name, fields in {TRUTH: truth, **predictions}.items():
        heights, _ = np.histogram(fields.numpy(), bins=edges, density=True)
        axis.stairs(heights, edges, color=colour(name), label=name, linewidth=_width(name))
    axis.set(xlabel="value", ylabel="density", yscale="log")
    axis.legend(frameon=False)
    return figure


def loss_curves(histories: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw training and validation loss against epochs, one panel per trained network."""
    figure = _figure(2 * len(histories), 1.2)
    axes = figure.subplots(1, len(histories), squeeze=False)[0]
    for axis, (name, history) in zip(axes, histories.items(), strict=True):
        axis.semilogy(history["training_loss"], color="#0072B2", label="training")
        axis.semilogy(history["validation_loss"], color="#D55E00", label="validation")
        axis.axvline(history["best_epoch"], color="0.6", linestyle="--", label="weights kept")
        axis.set(xlabel="epoch", ylabel="loss", title=name)
        axis.legend(frameon=False)
    return figure


def bars(values: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw one logarithmic bar panel per quantity, one bar per method."""
    figure = _figure(1.3 * len(values), 1)
    axes = figure.subplots(1, len(values), squeeze=False)[0]
    for axis, (title, heights) in zip(axes, values.items(), strict=True):
        names = list(heights)
        drawn = axis.bar(names, list(heights.values()), color=[colour(name) for name in names])
        axis.bar_label(drawn, fmt="%.2g", fontsize=8)
        axis.set(title=title, yscale="log")
        axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axis.margins(y=0.2)
        axis.tick_params(axis="x", labelsize=8)
    return figure


def _width(name: str) -> float:
    """Return a line's width: the truth lies broad beneath the predictions."""
    return 2.5 if name == TRUTH else 1.2


def save(figure: Figure, file: Path | BinaryIO, *, kind: str = "png") -> None:
    """Write a figure as PNG or SVG, the same bytes for the same figure."""
    with matplotlib.rc_context({"svg.hashsalt": "twoscale"}):
        date = {"Date": None} if kind == "svg" else {}
        figure.savefig(file, format=kind, dpi=130, metadata=date)


def _figure(columns: float, rows: float) -> Figure:
    size = (_PANEL * columns + 1, _PANEL * rows + 0.3)
    return Figure(figsize=size, layout="constrained")


def _field(axis: Axes, values: np.ndarray, title: str, **options: Any) -> Any:
    axis.set_title(title, fontsize=10)
    axis.spines[:].set_visible(True)
    axis.set(xticks=[], yticks=[])
    aspect = "auto" if 1 in values.shape else "equal"  # a line fills its panel
    return axis.imshow(values, origin="lower", interpolation="nearest", aspect=aspect, **options)


def _draw_seams(axis: Axes, seams: Seams) -> None:
    for row in seams.rows:
        axis.axhline(row - 0.5, color="black", linewidth=0.5, alpha=0.5)
    for column in seams.columns:
        axis.axvline(column - 0.5, color="black", linewidth=0.5, alpha=0.5)
