"""Pictures of fields: one sample, predictions beside each other, the map of the error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.domain.patches import Seams
from twoscale.domain.space import Space
from twoscale.report.axes import HALF, new_figure
from twoscale.report.method_looks import TRUTH
from twoscale.report.run_samples import SamplePrediction
from twoscale.runtime.texts import percent

Draw = Callable[[Axes], object]

_WHOLE = 10.6  # inches: the page
_MOST_CHANNELS = 4  # that are drawn of a side; the first ones
_MOST_PARAMETERS = 8  # that are listed
_NET_WIDTH = 0.83  # of a panel's width without its colour scale
_PREDICTION = "#0072B2"


def channel_names(space: Space) -> Sequence[str]:
    """Return the titles of the channels that pictures show: none for a single channel."""
    if space.channels == 1:
        return ()
    return space.names or [f"channel {name}" for name in space.channel_names]


def shown_channels(count: int) -> int:
    """Return how many of a side's channels are drawn."""
    return min(count, _MOST_CHANNELS)


def short(text: str, most: int = 28) -> str:
    """Return a name as one line of at most so many letters, none of which is mathematics."""
    line = " ".join(text.split())
    line = line if len(line) <= most else line[: most - 1] + "…"
    return line.replace("$", r"\$")


def draw_field(
    axis: Axes,
    values: np.ndarray,
    title: str,
    seams: Seams | None = None,
    *,
    over: np.ndarray | None = None,
    scale: bool = False,
    marks: str = "black",
    **look: Any,
) -> Any:
    """Draw a field (height, width) as an image, or as a curve (and return None) if it is a line.

    Patch borders have the colour `marks`. A second field `over` a curve is dashed. With `scale` an
    image has its colours beside it.
    """
    axis.set_title(title, fontsize=10)
    axis.spines[:].set_visible(True)
    axis.grid(False)
    height, width = values.shape
    if 1 in values.shape:
        _draw_curve(axis, values, over, seams, look.get("vmin"), look.get("vmax"))
        return None
    axis.set(xticks=[], yticks=[])
    image = axis.imshow(values, origin="lower", interpolation="nearest", **look)
    axis.set_aspect("equal" if 1 / 3 <= height / width <= 3 else "auto")
    for row in () if seams is None else seams.rows:
        axis.axhline(row - 0.5, color=marks, linewidth=0.5, alpha=0.5)
    for column in () if seams is None else seams.columns:
        axis.axvline(column - 0.5, color=marks, linewidth=0.5, alpha=0.5)
    if scale:
        bar = axis.figure.colorbar(image, ax=axis, shrink=0.8, aspect=24, pad=0.02)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)
    return image


def _draw_curve(
    axis: Axes,
    values: np.ndarray,
    over: np.ndarray | None,
    seams: Seams | None,
    low: float | None,
    high: float | None,
) -> None:
    """Draw a field on a line, between the ends of what would be its colour scale."""
    axis.plot(values.ravel(), color="#222222", linewidth=1.2)
    if over is not None:
        axis.plot(over.ravel(), color=_PREDICTION, linewidth=1.2, linestyle="--")
    axis.set_xticks([])
    axis.tick_params(labelsize=8)
    if low is not None and high is not None:
        room = 0.05 * (high - low)
        axis.set_ylim(low - room, high + room)
    for place in () if seams is None else (*seams.columns, *seams.rows):
        axis.axvline(place - 0.5, color="0.7", linewidth=0.7, linestyle="--")


def draw_beside(
    axes: np.ndarray,
    truth: np.ndarray,
    predictions: Mapping[str, np.ndarray],
    *,
    inputs: np.ndarray | None = None,
    seams: Seams | None = None,
) -> None:
    """Draw truth above input, and predictions above their errors, into two rows of axes.

    Arrays are one channel (height, width); fields on a line are curves. Errors share one colour
    scale, so that their sizes compare.
    """
    truth = truth.astype(np.float64)
    # In double precision: squares and differences of single precision may be infinite.
    fields = {name: field.astype(np.float64) for name, field in predictions.items()}
    errors = {name: field - truth for name, field in fields.items()}
    look = _truth_look(truth)
    image = draw_field(axes[0, 0], truth, TRUTH, **look)
    if inputs is None:
        axes[1, 0].set_axis_off()
    else:
        draw_field(axes[1, 0], inputs.astype(np.float64), "input", cmap="cividis")
    error_look = _error_look(*errors.values())
    for column, (name, error) in enumerate(errors.items(), 1):
        draw_field(axes[0, column], fields[name], name, **look)
        words = _error_words(error, truth)
        shown = draw_field(axes[1, column], error, words, seams=seams, **error_look)
    if image is not None:
        figure = axes[0, 0].figure
        figure.colorbar(image, ax=list(axes[0]), shrink=0.8)
        figure.colorbar(shown, ax=list(axes[1]), shrink=0.8)


def _truth_look(*fields: np.ndarray) -> dict[str, Any]:
    low, high = min(float(one.min()) for one in fields), max(float(one.max()) for one in fields)
    return {"vmin": low, "vmax": high if high > low else low + 1.0, "cmap": "viridis"}


def _error_look(*errors: np.ndarray) -> dict[str, Any]:
    top = max(float(np.abs(error).max()) for error in errors) or 1.0
    return {"vmin": -top, "vmax": top, "cmap": "RdBu_r"}


def _error_words(error: np.ndarray, truth: np.ndarray) -> str:
    size = float(np.linalg.norm(truth))
    return f"error, {percent(float(np.linalg.norm(error)) / size)}" if size else "error"


def side_by_side(samples: Mapping[str, SamplePrediction], seams: Seams | None = None) -> Figure:
    """Draw the first channel of the same sample as several runs predict it, above their errors."""
    truth = next(iter(samples.values())).truth
    columns = 1 + len(samples)
    side = max(1.45, min(2.4, _WHOLE / columns))
    figure = new_figure(side * columns + 0.3, 2 * (side * _aspect(truth) + 0.35))
    draw_beside(
        figure.subplots(2, columns, squeeze=False),
        truth[0],
        {short(run, 20): one.prediction[0] for run, one in samples.items()},
        seams=seams,
    )
    return figure


def sample_strip(
    sample: SamplePrediction,
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
    rows = [_input_panels(sample, inputs)]
    for place in range(shown_channels(len(sample.truth))):
        rows.append(_channel_panels(sample, place, names[place] if names else "", seams))
    width, flat = HALF, list(chain.from_iterable(rows))
    if len(rows) == 2 and len(rows[0]) == 1:
        width, rows = _WHOLE if columns > 2 else HALF, _cut(flat, columns)
    else:
        rows = [line for row in rows for line in _cut(row, 3)]
    across = max(map(len, rows))
    figure = panels_figure(width, (len(rows), across), sample.truth)
    for line, row in zip(figure.subplots(len(rows), across, squeeze=False), rows, strict=True):
        for axis, draw in zip_longest(line, row):
            axis.set_axis_off() if draw is None else draw(axis)
    return figure


def _cut(panels: Sequence[Draw], length: int) -> list[list[Draw]]:
    return [list(panels[start : start + length]) for start in range(0, len(panels), length)]


def _input_panels(sample: SamplePrediction, names: Sequence[str]) -> list[Draw]:
    """Return what draws the input fields, and a list of parameters."""
    panels: list[Draw] = []
    fields = () if sample.inputs is None else sample.inputs
    for place, values in enumerate(fields[:_MOST_CHANNELS]):
        title = short(f"input, {names[place]}" if len(names) > 1 else "input")
        panels.append(partial(draw_field, values=values, title=title, scale=True, cmap="cividis"))
    if len(sample.parameters):
        own = names[len(fields) :] or [f"parameter {k}" for k in range(len(sample.parameters))]
        lines = [
            f"{short(name)} = {value:.4g}"
            for name, value in zip(own, sample.parameters, strict=True)
        ]
        more = len(lines) - _MOST_PARAMETERS
        lines[_MOST_PARAMETERS:] = [f"and {more} more"] if more > 0 else []
        panels.append(partial(_draw_lines, text="\n".join(lines)))
    return panels


def _draw_lines(axis: Axes, text: str) -> None:
    axis.set_axis_off()
    axis.set_title("parameters", fontsize=10)
    axis.text(0.5, 0.95, text, ha="center", va="top", transform=axis.transAxes)


def _channel_panels(
    sample: SamplePrediction, place: int, name: str, seams: Seams | None
) -> list[Draw]:
    """Return what draws truth, prediction and error of a channel."""
    truth, prediction = sample.truth[place], sample.prediction[place]
    error = prediction - truth
    ending = f", {name}" if name else ""
    wrong = partial(
        draw_field,
        values=error,
        title=_error_words(error, truth),
        seams=seams,
        scale=True,
        **_error_look(error),
    )
    if 1 in truth.shape:
        look = {"over": prediction, "seams": seams, **_truth_look(truth, prediction)}
        title = short(f"truth (solid), prediction{ending}")
        return [partial(draw_field, values=truth, title=title, **look), wrong]
    look = _truth_look(truth)
    title = short(f"prediction{ending}")
    return [
        partial(draw_field, values=truth, title=short(f"truth{ending}"), **look),
        partial(draw_field, values=prediction, title=title, scale=True, **look),
        wrong,
    ]


def panels_figure(width: float, panels: tuple[int, int], field: np.ndarray) -> Figure:
    """Return a figure for rows and columns of panels, each of a field and its colour scale."""
    down, across = panels
    side = (width - 0.3) / across
    return new_figure(width, down * (_NET_WIDTH * side * _aspect(field) + 0.3) + 0.1)


def _aspect(field: np.ndarray) -> float:
    """Return height over width of a panel."""
    _, height, width = field.shape
    if 1 in (height, width):
        return 0.62
    return min(max(height / width, 0.45), 1.6)
