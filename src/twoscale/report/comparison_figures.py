"""The pictures of the demo's page: one prediction, error against time, and seams.

Each can be drawn in two widths: for a page, and narrow for a phone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from twoscale.domain.patches import Seams
from twoscale.report.axes import chart_style, log_axis, new_figure, shared_legend
from twoscale.report.figures import draw_seams
from twoscale.runtime.texts import duration_text, percent, short_duration_text

WIDE, HALF, NARROW = 8.4, 5.6, 3.5  # inches of a page, of half of it, and of a phone
_ZOOM = 10  # nodes on each side of the seams
_FIELD, _INPUT, _ERROR = "viridis", "cividis", "RdBu_r"


@dataclass(frozen=True)
class Look:
    """How a run is shown in all pictures and tables: its name, colour and marker."""

    title: str
    colour: str
    marker: str

    @property
    def lines(self) -> str:
        """Return the title with its part in brackets on a line of its own."""
        return self.title.replace(" (", "\n(", 1)


@chart_style()
def prediction_picture(
    given: np.ndarray,
    truth: np.ndarray,
    prediction: np.ndarray,
    *,
    seconds: float,
    width: float = WIDE,
) -> Figure:
    """Draw input, prediction and error of one sample in a row, with the time and the error.

    Fields are (height, width); `seconds` is the time of one prediction.
    """
    error = prediction.astype(np.float64) - truth
    share = float(np.linalg.norm(error) / np.linalg.norm(truth))
    worst = float(np.abs(error).max()) or 1.0
    panels: tuple[tuple[str, np.ndarray, dict[str, Any]], ...] = (
        ("input\n", given, {"cmap": _INPUT}),
        (f"prediction\nin {short_duration_text(seconds)}", prediction, {"cmap": _FIELD}),
        (f"error\n{percent(share, 2)}", error, {"cmap": _ERROR, "vmin": -worst, "vmax": worst}),
    )
    figure = new_figure(width, 0.33 * width + 0.9)
    axes = figure.subplots(1, 3)
    for axis, (title, field, options) in zip(axes, panels, strict=True):
        image = _image(axis, field, title, **options)
        bar = figure.colorbar(image, ax=axis, location="bottom", shrink=0.9, aspect=20)
        bar.ax.locator_params(nbins=2)
        bar.ax.ticklabel_format(axis="x", scilimits=(-2, 3))
    for axis in axes[:2]:
        axis.text(1.12, 0.5, "\u2192", transform=axis.transAxes, fontsize=16, ha="center")
    return figure


@chart_style()
def error_maps(
    truth: np.ndarray, predictions: Mapping[Look, np.ndarray], seams: Seams, *, width: float = HALF
) -> Figure:
    """Draw the error of every prediction of one sample on one scale, with the patch borders."""
    errors = {look: field.astype(np.float64) - truth for look, field in predictions.items()}
    worst = max(float(np.abs(error).max()) for error in errors.values()) or 1.0
    size = float(np.linalg.norm(truth))
    figure, axes = _square(len(errors), width)
    for axis, (look, error) in zip(axes, errors.items(), strict=True):
        words = f"{look.lines}\n{percent(float(np.linalg.norm(error)) / size, 2)}"
        image = _image(axis, error, words, cmap=_ERROR, vmin=-worst, vmax=worst)
        draw_seams(axis, seams)
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.7, aspect=35)
    bar.ax.locator_params(nbins=3)
    bar.ax.ticklabel_format(axis="x", scilimits=(-2, 3))
    return figure


@chart_style()
def zoomed_fields(
    truth: np.ndarray, predictions: Mapping[Look, np.ndarray], seams: Seams, *, width: float = HALF
) -> Figure:
    """Draw each predicted field around one crossing of seams, with its contour lines.

    Contour lines break where neighbouring patches disagree. Dashed lines are those of the truth.
    """
    row, column = (lines[len(lines) // 2] for lines in (seams.rows, seams.columns))
    rows, columns = (
        slice(max(0, line - _ZOOM), min(line + _ZOOM, side))
        for line, side in zip((row, column), truth.shape, strict=True)
    )
    target = truth[rows, columns]
    levels = np.linspace(float(target.min()), float(target.max()), 12)[1:-1]
    figure, axes = _square(len(predictions), width)
    for axis, (look, field) in zip(axes, predictions.items(), strict=True):
        near, title = field[rows, columns], look.lines
        _image(axis, near, title, cmap=_FIELD, vmin=target.min(), vmax=target.max())
        if levels[0] < levels[-1]:
            axis.contour(target, levels, colors="black", linestyles="dashed", linewidths=0.8)
            axis.contour(near, levels, colors="white", linestyles="solid", linewidths=1.2)
        axis.axhline(row - rows.start - 0.5, color="black", linewidth=0.8)
        axis.axvline(column - columns.start - 0.5, color="black", linewidth=0.8)
    return figure


@chart_style()
def error_profile(
    truth: np.ndarray, predictions: Mapping[Look, np.ndarray], seams: Seams, *, width: float = WIDE
) -> Figure:
    """Draw the error along one row of nodes; dashed lines are patch borders."""
    row = truth.shape[0] // 2 + truth.shape[0] // 8
    figure = new_figure(width, 3.3)
    axis = figure.subplots()
    for look, field in predictions.items():
        axis.plot(field[row] - truth[row], color=look.colour, label=look.title, linewidth=1.4)
    for column in seams.columns:
        axis.axvline(column - 0.5, color="0.6", linestyle="--", linewidth=0.8)
    axis.set(xlabel="column", ylabel=f"error in row {row}")
    axis.ticklabel_format(axis="y", scilimits=(-2, 3))
    shared_legend(figure, [axis])
    return figure


@chart_style()
def error_against_time(
    points: Sequence[tuple[Look, float, float]], *, width: float = WIDE
) -> Figure:
    """Draw the relative error in percent against the seconds of fit, a point per run."""
    figure = new_figure(width, 3.6)
    axis = figure.subplots()
    for look, seconds, error in points:
        label = f"{look.title}: {percent(error / 100, 2)}, {duration_text(seconds)}"
        axis.plot(seconds, error, look.marker, color=look.colour, markersize=10, label=label)
    log_axis(axis, "x", [seconds for _, seconds, _ in points])
    log_axis(axis, "y", [error for _, _, error in points])
    axis.margins(x=0.15, y=0.15)
    axis.set(xlabel="time to fit (s)", ylabel="relative error on test fields (%)")
    shared_legend(figure, [axis])
    return figure


@chart_style()
def seam_bars(values: Mapping[str, Mapping[Look, float]], *, width: float = WIDE) -> Figure:
    """Draw a panel of horizontal bars for each quantity at seams, on a logarithmic axis."""
    figure = new_figure(width, 2.0 * len(values))
    axes = figure.subplots(len(values), 1, squeeze=False)[:, 0]
    for axis, (words, lengths) in zip(axes, values.items(), strict=True):
        drawn = axis.barh(
            [look.lines for look in lengths],
            list(lengths.values()),
            color=[look.colour for look in lengths],
        )
        axis.bar_label(drawn, fmt="%.1e", padding=3)
        log_axis(axis, "x", list(lengths.values()), most=4)
        axis.invert_yaxis()
        axis.margins(x=0.3)
        axis.set_title(words, loc="left")
    return figure


def _square(count: int, width: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with two panels in a row, and their axes."""
    rows = -(-count // 2)
    figure = new_figure(width, (0.5 * width + 0.3) * rows + 0.4)
    axes = list(figure.subplots(rows, 2, squeeze=False).flat)
    for axis in axes[count:]:
        axis.remove()
    return figure, axes[:count]


def _image(axis: Axes, field: np.ndarray, title: str, **options: Any) -> AxesImage:
    axis.set_title(title)
    axis.set(xticks=[], yticks=[])
    axis.grid(False)
    axis.spines[:].set_visible(True)
    return axis.imshow(field, origin="lower", interpolation="nearest", **options)
