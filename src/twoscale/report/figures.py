"""Drawings of fields, their errors and seams; figures as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from twoscale.domain.patches import Seams
from twoscale.domain.space import Space
from twoscale.report.method_looks import TRUTH
from twoscale.runtime.texts import percent


def channel_names(space: Space) -> Sequence[str]:
    """Return the titles of the channels that pictures show: none for a single channel."""
    if space.channels == 1:
        return ()
    return space.names or [f"channel {name}" for name in space.channel_names]


def draw_fields(
    axes: np.ndarray,
    inputs: np.ndarray,
    truth: np.ndarray,
    predictions: Mapping[str, np.ndarray],
    seams: Seams,
) -> None:
    """Draw truth above input, and predictions above their errors, into two rows of axes.

    Arrays are one channel (height, width); fields on a line are curves.
    """
    truth = truth.astype(np.float64)
    # In double precision: squares and differences of single precision may be infinite.
    fields = {method: field.astype(np.float64) for method, field in predictions.items()}
    errors = {method: field - truth for method, field in fields.items()}
    worst = max(float(np.abs(error).max()) for error in errors.values()) or 1.0
    top = float(np.abs(truth).max()) or 1.0
    low = -top if truth.min() < 0 else 0.0
    image = draw_field(axes[0, 0], truth, TRUTH, vmin=low, vmax=top, cmap="viridis")
    draw_field(axes[1, 0], inputs.astype(np.float64), "input", cmap="cividis")
    for column, (method, error) in enumerate(errors.items(), 1):
        draw_field(axes[0, column], fields[method], method, vmin=low, vmax=top, cmap="viridis")
        size = float(np.linalg.norm(truth))
        words = f"error, {percent(float(np.linalg.norm(error)) / size, 2)}" if size else "error"
        shown = draw_field(axes[1, column], error, words, vmin=-worst, vmax=worst, cmap="RdBu_r")
        draw_seams(axes[1, column], seams)
    if image is not None:
        figure = axes[0, 0].figure
        figure.colorbar(image, ax=list(axes[0]), shrink=0.8)
        figure.colorbar(shown, ax=list(axes[1]), shrink=0.8)


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
    **_: Any,
) -> None:
    """Draw a field on a line, between the ends of what would be its colour scale."""
    axis.plot(values, color="#222222", linewidth=1.2)
    axis.set_xticks([])
    if vmin is not None and vmax is not None:
        room = 0.05 * (vmax - vmin)
        axis.set_ylim(vmin - room, vmax + room)


def draw_seams(axis: Axes, seams: Seams, *, colour: str = "black") -> None:
    """Draw the borders of patches as thin lines over an image."""
    for row in seams.rows:
        axis.axhline(row - 0.5, color=colour, linewidth=0.5, alpha=0.5)
    for column in seams.columns:
        axis.axvline(column - 0.5, color=colour, linewidth=0.5, alpha=0.5)
