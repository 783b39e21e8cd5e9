"""Pictures of a run's fields: one sample, several predictions of it, the map of the error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.domain.patches import Seams
from twoscale.report.axes import chart_style, new_figure
from twoscale.report.figures import draw_field, draw_seams
from twoscale.report.method_looks import TRUTH
from twoscale.report.run_samples import RunSamples, Shown
from twoscale.runtime.texts import percent

HALF = 4.5  # inches: half of the page, and all of a phone
_WHOLE = 10.6  # inches: the page
_MOST_CHANNELS = 4  # that are drawn of a side; the first ones
_NET = 0.83  # of a panel's width without its colour scale
PREDICTION = "#0072B2"


def shown_channels(count: int) -> int:
    """Return how many of a side's channels are drawn."""
    return min(count, _MOST_CHANNELS)


def sample_strip(
    shown: Shown,
    names: Sequence[str],
    inputs: Sequence[str],
    seams: Seams | None = None,
    *,
    columns: int = 2,
) -> Figure:
    """Draw one sample: inputs, then truth, prediction and error of each channel.

    Truth and prediction share a colour scale. `names` are those of the output's channels, `inputs`
    of the input fields and parameters; both may be empty where there is only one. A single channel
    with a single input is drawn in so many `columns`.
    """
    rows, whole = _panel_rows(shown, names, inputs), False
    if len(rows) == 2 and len(rows[0]) == 1 and len(rows[1]) <= 3:
        whole = columns > 2
        flat = list(chain.from_iterable(rows))
        rows = [flat[start : start + columns] for start in range(0, len(flat), columns)]
    across = max(map(len, rows))
    width = _WHOLE if whole else HALF
    side = (width - 0.3) / across
    with chart_style():
        figure = new_figure(width, len(rows) * (_NET * side * _aspect(shown.truth) + 0.3) + 0.1)
        axes = figure.subplots(len(rows), across, squeeze=False)
        for line, row in zip(axes, rows, strict=True):
            for axis, panel in zip(line, row, strict=False):
                panel.draw(axis, None if panel.role == "input" else seams)
            for axis in line[len(row) :]:
                axis.set_axis_off()
        for line, row in zip(axes, rows, strict=True):
            _colour_bars(figure, line, row)
    return figure


class _Panel:
    """One drawing of a sample: a field, two curves, or a list of parameters."""

    def __init__(self, title: str, values: np.ndarray | str, role: str, **look: Any) -> None:
        self.title = title
        self.values = values
        self.role = role  # input, truth, prediction or error
        self.look = look
        self.image: Any = None
        self.over: np.ndarray | None = None

    def draw(self, axis: Axes, seams: Seams | None) -> None:
        if isinstance(self.values, str):
            axis.set_axis_off()
            axis.set_title(self.title, fontsize=10)
            axis.text(0.5, 0.95, self.values, ha="center", va="top", transform=axis.transAxes)
            return
        axis.grid(False)
        self.image = draw_field(axis, self.values, self.title, **self.look)
        if self.image is None:
            if self.over is not None:
                axis.plot(self.over.ravel(), color=PREDICTION, linewidth=1.2, linestyle="--")
            axis.tick_params(labelsize=8)
            _mark_columns(axis, seams)
            return
        height, width = self.values.shape
        axis.set_aspect("auto" if not 1 / 3 <= height / width <= 3 else "equal")
        if self.role == "error" and seams is not None:
            draw_seams(axis, seams)


def _panel_rows(shown: Shown, names: Sequence[str], inputs: Sequence[str]) -> list[list[_Panel]]:
    """Return the panels of a sample: a row of inputs, and a row for each output channel."""
    given: list[_Panel] = []
    fields = () if shown.inputs is None else shown.inputs
    for place, values in enumerate(fields[:_MOST_CHANNELS]):
        title = f"input, {inputs[place]}" if len(inputs) > 1 else "input"
        given.append(_Panel(short(title), values, "input", cmap="cividis"))
    if len(shown.parameters):
        start = len(fields)
        lines = [
            f"{short(inputs[start + place]) if inputs else f'parameter {place}'} = {value:.4g}"
            for place, value in enumerate(shown.parameters[:8])
        ]
        more = len(shown.parameters) - len(lines)
        text = "\n".join([*lines, *([f"and {more} more"] if more else [])])
        given.append(_Panel("parameters", text, "input"))
    rows = [given]
    for place in range(shown_channels(len(shown.truth))):
        rows.append(_channel_row(shown, place, names[place] if names else ""))
    return [row[start : start + 3] for row in rows for start in range(0, len(row), 3)]


def _channel_row(shown: Shown, place: int, name: str) -> list[_Panel]:
    truth, prediction = shown.truth[place], shown.prediction[place]
    error = prediction - truth
    low, high = float(truth.min()), float(truth.max())
    top = float(np.abs(error).max()) or 1.0
    size = float(np.linalg.norm(truth))
    words = f"error, {percent(float(np.linalg.norm(error)) / size)}" if size else "error"
    ending = f", {name}" if name else ""
    scale = {"vmin": low, "vmax": high if high > low else low + 1.0, "cmap": "viridis"}
    spread = {"vmin": -top, "vmax": top, "cmap": "RdBu_r"}
    if 1 in truth.shape:
        scale |= {
            "vmin": min(low, float(prediction.min())),
            "vmax": max(high, float(prediction.max())),
        }
        both = _Panel(short(f"truth (solid), prediction{ending}"), truth, "truth", **scale)
        both.over = prediction
        return [both, _Panel(words, error, "error", **spread)]
    return [
        _Panel(short(f"truth{ending}"), truth, "truth", **scale),
        _Panel(short(f"prediction{ending}"), prediction, "prediction", **scale),
        _Panel(words, error, "error", **spread),
    ]


def _colour_bars(figure: Figure, axes: np.ndarray, row: Sequence[_Panel]) -> None:
    """Draw a scale beside each image; truth and prediction have the same one."""
    for axis, panel in zip(axes, row, strict=False):
        if panel.image is not None and panel.role != "truth":
            scale = figure.colorbar(panel.image, ax=axis, shrink=0.8, aspect=24, pad=0.02)
            scale.ax.tick_params(labelsize=8)
            scale.outline.set_visible(False)


def _aspect(field: np.ndarray) -> float:
    """Return height over width of a panel."""
    _, height, width = field.shape
    if 1 in (height, width):
        return 0.62
    return min(max(height / width, 0.45), 1.6)


def short(text: str, most: int = 28) -> str:
    """Return a name as one line of at most so many letters, none of which is mathematics."""
    line = " ".join(text.split())
    line = line if len(line) <= most else line[: most - 1] + "…"
    return line.replace("$", r"\$")


def error_map(samples: RunSamples, names: Sequence[str]) -> Figure:
    """Draw the root mean square error over the samples at each node, with patch borders."""
    shown = shown_channels(len(samples.error_map))
    across = min(shown, 2)
    down = -(-shown // across)
    side = (HALF - 0.3) / across
    with chart_style():
        height = down * (_NET * side * _aspect(samples.error_map) + 0.3) + 0.1
        figure = new_figure(HALF, height)
        axes = figure.subplots(down, across, squeeze=False).flatten()
        for axis in axes[shown:]:
            axis.set_axis_off()
        for place, axis in enumerate(axes[:shown]):
            title = short(names[place]) if names else ""
            panel = _Panel(title, 100 * samples.error_map[place], "error", vmin=0.0, cmap="magma")
            panel.look["vmax"] = 100 * float(samples.error_map[place].max()) or 1.0
            line = 1 in samples.error_map.shape[1:]
            panel.draw(axis, samples.seams if line else None)
            if panel.image is None:
                axis.set_ylabel("RMS error (%)")
                continue
            if samples.seams is not None:
                draw_seams(axis, samples.seams, colour="white")
            figure.colorbar(panel.image, ax=axis, shrink=0.85, pad=0.02)
    return figure


def _mark_columns(axis: Axes, seams: Seams | None) -> None:
    """Draw patch borders of fields on a line."""
    for place in () if seams is None else (*seams.columns, *seams.rows):
        axis.axvline(place - 0.5, color="0.7", linewidth=0.7, linestyle="--")


def side_by_side(samples: Mapping[str, Shown], name: str = "", channel: int = 0) -> Figure:
    """Draw one channel of the same sample as several runs predict it, above their errors.

    Errors share one colour scale, so that their sizes compare.
    """
    first = next(iter(samples.values()))
    truth = first.truth[channel]
    errors = {run: one.prediction[channel] - truth for run, one in samples.items()}
    top = max(float(np.abs(error).max()) for error in errors.values()) or 1.0
    low, high = float(truth.min()), float(truth.max())
    scale = {"vmin": low, "vmax": high if high > low else low + 1.0, "cmap": "viridis"}
    columns = 1 + len(samples)
    side = max(1.45, min(2.4, _WHOLE / columns))
    with chart_style():
        figure = new_figure(side * columns + 0.3, 2 * (side * _aspect(first.truth) + 0.35))
        axes = figure.subplots(2, columns, squeeze=False)
        _Panel(short(f"{TRUTH}{f', {name}' if name else ''}", 20), truth, "truth", **scale).draw(
            axes[0, 0], None
        )
        axes[1, 0].set_axis_off()
        for column, (run, error) in enumerate(errors.items(), 1):
            field = samples[run].prediction[channel]
            shown = _Panel(short(run, 20), field, "prediction", **scale)
            shown.draw(axes[0, column], None)
            words = f"error, {percent(samples[run].error)}"
            below = _Panel(words, error, "error", vmin=-top, vmax=top, cmap="RdBu_r")
            below.draw(axes[1, column], None)
        if below.image is not None:
            figure.colorbar(shown.image, ax=list(axes[0]), shrink=0.8)
            figure.colorbar(below.image, ax=list(axes[1]), shrink=0.8)
    return figure
