"""Pictures of fields, their errors, seams, spectra and values; colour-blind safe, print size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from twoscale.errors import missing_extra
from twoscale.fields.grid import Space
from twoscale.fields.patches import Seams
from twoscale.fields.spectra import radial_spectrum
from twoscale.problems import Problem
from twoscale.report.figure_style import styled
from twoscale.report.method_looks import TRUTH, colour

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise missing_extra("matplotlib", "report") from error

_PANEL = 2.5  # inches
_MOST_CHANNELS = 6  # that are drawn; the first ones

Predictions = Mapping[str, Tensor]  # method name -> (batch, channels, height, width)
Names = Sequence[str]  # of the output's channels; none if there is only one


def channel_names(space: Space) -> Names:
    """Return the titles of the channels that pictures show: none for a single channel."""
    if space.channels == 1:
        return ()
    return space.names or [f"channel {name}" for name in space.channel_names]


@styled
def field_panels(
    inputs: Tensor | None,
    truth: Tensor,
    predictions: Predictions,
    sample: int,
    seams: Seams,
    names: Names = (),
) -> Figure:
    """Draw one sample: truth above input, each prediction above its error with the seam lines.

    Two rows for each output channel; beside it the input's channel of the same number, if there is
    one. All errors of a channel share one scale, so that their sizes compare. `inputs` are fields
    (batch, channels, height, width), None where there are only parameters.
    """
    shown, columns = _shown(truth), 1 + len(predictions)
    figure = _figure(columns, 2 * shown)
    axes = figure.subplots(2 * shown, columns, squeeze=False)
    for channel in range(shown):
        given = None if inputs is None else inputs[sample].numpy()
        draw_fields(
            axes[2 * channel : 2 * channel + 2],
            None if given is None or channel >= len(given) else given[channel],
            truth[sample, channel].numpy(),
            {name: batch[sample, channel].numpy() for name, batch in predictions.items()},
            seams,
            name=_name(names, channel),
        )
    return figure


def draw_fields(
    axes: np.ndarray,
    inputs: np.ndarray | None,
    truth: np.ndarray,
    predictions: Mapping[str, np.ndarray],
    seams: Seams,
    *,
    name: str = "",
) -> None:
    """Draw truth above input, and predictions above their errors, into two rows of axes.

    Arrays are one channel (height, width), whose `name` is shown; fields on a line are curves.
    """
    truth = truth.astype(np.float64)
    # In double precision: squares and differences of single precision may be infinite.
    fields = {method: field.astype(np.float64) for method, field in predictions.items()}
    errors = {method: field - truth for method, field in fields.items()}
    worst = max(float(np.abs(error).max()) for error in errors.values()) or 1.0
    top = float(np.abs(truth).max()) or 1.0
    low = -top if truth.min() < 0 else 0.0
    title = f"{TRUTH}, {name}" if name else TRUTH
    image = draw_field(axes[0, 0], truth, title, vmin=low, vmax=top, cmap="viridis")
    if inputs is None:
        axes[1, 0].set_axis_off()
    else:
        draw_field(axes[1, 0], inputs.astype(np.float64), "input", cmap="cividis")
    for column, (method, error) in enumerate(errors.items(), 1):
        draw_field(axes[0, column], fields[method], method, vmin=low, vmax=top, cmap="viridis")
        size = float(np.linalg.norm(truth))
        words = f"error, {100 * np.linalg.norm(error) / size:.2g} %" if size else "error"
        shown = draw_field(axes[1, column], error, words, vmin=-worst, vmax=worst, cmap="RdBu_r")
        draw_seams(axes[1, column], seams)
    if image is not None:
        figure = axes[0, 0].figure
        figure.colorbar(image, ax=list(axes[0]), shrink=0.8)
        figure.colorbar(shown, ax=list(axes[1]), shrink=0.8)


@styled
def residual_panels(
    problem: Problem, inputs: Tensor, predictions: Predictions, sample: int
) -> Figure:
    """Draw |PDE residual| of each prediction on one logarithmic scale: seams show as lines.

    One row for each equation, where the problem has several.
    """
    part = slice(sample, sample + 1)
    residuals = {
        name: _planes(problem.residual(inputs[part].double(), fields[part].double()))
        for name, fields in predictions.items()
    }
    rows = len(next(iter(residuals.values())))
    figure = _figure(len(residuals), rows)
    axes = figure.subplots(rows, len(residuals), squeeze=False)
    for row in range(rows):
        sizes = {name: np.abs(values[row]) for name, values in residuals.items()}
        top = max(float(np.quantile(size, 0.999)) for size in sizes.values()) or 1.0
        for axis, (name, size) in zip(axes[row], sizes.items(), strict=True):
            norm = matplotlib.colors.LogNorm(top / 1e3, top)
            image = draw_field(axis, np.maximum(size, top / 1e3), name, norm=norm, cmap="magma")
        if image is not None:
            figure.colorbar(image, ax=list(axes[row]), shrink=0.8, label="|residual|")
    return figure


def _planes(residual: Tensor) -> np.ndarray:
    """Return the residual of one sample as (equations, height, width)."""
    return residual.reshape(-1, *residual.shape[-2:]).numpy()


@styled
def seam_profile(
    truth: Tensor, predictions: Predictions, sample: int, seams: Seams, names: Names = ()
) -> Figure:
    """Draw the error along a row through the middle of the patches; seams are dashed lines."""
    shown = _shown(truth)
    figure = _figure(3, shown)
    axes = figure.subplots(shown, squeeze=False)[:, 0]
    row = _middle_row(seams, truth.shape[2])
    for channel, axis in enumerate(axes):
        for name, fields in predictions.items():
            error = (fields[sample, channel, row] - truth[sample, channel, row]).numpy()
            axis.plot(error, color=colour(name), label=name, linewidth=1.3)
        for column in seams.columns:
            axis.axvline(column - 0.5, color="0.6", linestyle="--", linewidth=0.8)
        axis.set(ylabel=f"error in row {row}", title=_name(names, channel))
    axes[-1].set_xlabel("column")
    axes[0].legend(frameon=False)
    return figure


def _middle_row(seams: Seams, height: int) -> int:
    """Return a row in the middle of the second patch; of the only one, if there are no seams."""
    edges = [row for row in seams.rows if row] + [height]
    start, stop = (0, height) if len(edges) == 1 else edges[:2]
    return (start + stop) // 2


@styled
def spectra(truth: Tensor, predictions: Predictions, names: Names = ()) -> Figure:
    """Draw the mean radial energy spectra of truth and predictions, a panel per channel."""
    figure, axes = _channel_panels(truth)
    for name, fields in {TRUTH: truth, **predictions}.items():
        energies = radial_spectrum(fields.double()).mean(0)[:, 1:]
        for axis, energy in zip(axes, energies, strict=False):
            waves = range(1, len(energy) + 1)
            axis.loglog(waves, energy, color=colour(name), label=name, linewidth=_width(name))
    for channel, axis in enumerate(axes):
        axis.set(xlabel="radial wave number", title=_name(names, channel))
    axes[0].set_ylabel("mean energy")
    axes[0].legend(frameon=False)
    return figure


@styled
def densities(truth: Tensor, predictions: Predictions, names: Names = ()) -> Figure:
    """Draw the densities of all values of truth and predictions, a panel per channel."""
    figure, axes = _channel_panels(truth)
    for channel, axis in enumerate(axes):
        low, high = (float(edge) for edge in truth[:, channel].aminmax())
        edges = np.linspace(low, high if high > low else low + max(1.0, abs(low)), 81)
        for name, fields in {TRUTH: truth, **predictions}.items():
            heights, _ = np.histogram(fields[:, channel].numpy(), bins=edges, density=True)
            axis.stairs(heights, edges, color=colour(name), label=name, linewidth=_width(name))
        axis.set(xlabel="value", yscale="log", title=_name(names, channel))
    axes[0].set_ylabel("density")
    axes[0].legend(frameon=False)
    return figure


def _shown(fields: Tensor) -> int:
    """Return the number of channels that are drawn of fields (batch, channels, ...)."""
    return min(fields.shape[1], _MOST_CHANNELS)


def _name(names: Names, channel: int) -> str:
    return names[channel] if names else ""


def _channel_panels(fields: Tensor) -> tuple[Figure, list[Axes]]:
    shown = _shown(fields)
    figure = _figure(2 * shown, 1.2)
    return figure, list(figure.subplots(1, shown, squeeze=False)[0])


@styled
def bars(values: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw one logarithmic bar panel per quantity, one bar per method."""
    figure = _figure(1.3 * len(values), 1)
    axes = figure.subplots(1, len(values), squeeze=False)[0]
    for axis, (title, heights) in zip(axes, values.items(), strict=True):
        names = list(heights)
        drawn = axis.bar(names, list(heights.values()), color=[colour(name) for name in names])
        axis.bar_label(drawn, fmt="%.2g", fontsize=9)
        axis.set(title=title, yscale="log")
        axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axis.margins(y=0.2)
        axis.tick_params(axis="x", labelsize=9)
    return figure


def _width(name: str) -> float:
    """Return a line's width: the truth lies broad beneath the predictions."""
    return 2.5 if name == TRUTH else 1.2


def save(figure: Figure, file: Path | BinaryIO, *, kind: str = "png") -> None:
    """Write a figure as PNG or SVG, the same bytes for the same figure.

    The text of an SVG stays text, which is small and can be searched and selected.
    """
    with matplotlib.rc_context({"svg.hashsalt": "twoscale", "svg.fonttype": "none"}):
        date = {"Date": None} if kind == "svg" else {}
        figure.savefig(file, format=kind, dpi=130, metadata=date)


def _figure(columns: float, rows: float) -> Figure:
    size = (_PANEL * columns + 1, _PANEL * rows + 0.3)
    return Figure(figsize=size, layout="constrained")


def draw_field(axis: Axes, values: np.ndarray, title: str, **options: Any) -> Any:
    """Draw a field (height, width) as an image, or as a curve (and return None) if it is a line."""
    axis.set_title(title, fontsize=10)
    axis.spines[:].set_visible(True)
    if 1 in values.shape:
        _curve(axis, values.ravel(), **options)
        return None
    axis.set(xticks=[], yticks=[])
    return axis.imshow(values, origin="lower", interpolation="nearest", **options)


def _curve(
    axis: Axes,
    values: np.ndarray,
    *,
    vmin: float | None = None,
    vmax: float | None = None,
    norm: Any = None,
    **_: Any,
) -> None:
    """Draw a field on a line, between the ends of what would be its colour scale."""
    axis.plot(values, color="#222222", linewidth=1.2)
    axis.set_xticks([])
    if norm is not None:
        axis.set(yscale="log", ylim=(norm.vmin, 1.5 * norm.vmax))
    elif vmin is not None and vmax is not None:
        room = 0.05 * (vmax - vmin)
        axis.set_ylim(vmin - room, vmax + room)


def draw_seams(axis: Axes, seams: Seams, *, colour: str = "black") -> None:
    """Draw the borders of patches as thin lines over an image."""
    for row in seams.rows:
        axis.axhline(row - 0.5, color=colour, linewidth=0.5, alpha=0.5)
    for column in seams.columns:
        axis.axvline(column - 0.5, color=colour, linewidth=0.5, alpha=0.5)
