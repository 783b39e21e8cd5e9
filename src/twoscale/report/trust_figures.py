"""The charts of trust: reliability, radii, certificates, distances of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from twoscale.report.axes import GREY, chart_style, log_axis, new_figure
from twoscale.report.run_fields import HALF
from twoscale.report.run_figures import ERROR, LEARNED
from twoscale.report.run_trust import Proofs, Radii, TrustSamples

_BINS = 24  # of a histogram, at most
_DIAGONAL: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
_DOTS: dict[str, Any] = {
    "linestyle": "none",
    "markersize": 5,
    "markeredgecolor": "white",
    "markeredgewidth": 0.4,
}


def reliability(radii: Radii) -> Figure:
    """Draw the share of samples within their radius against the level."""
    with chart_style():
        figure = new_figure(HALF, 3.4)
        axis = figure.subplots()
        draw_reliability(axis, {"this run": radii}, {"this run": LEARNED})
        axis.legend(loc="lower right")
    return figure


def draw_reliability(axis: Axes, runs: Mapping[str, Radii], colours: Mapping[str, str]) -> None:
    """Draw a line for each run, and what chance allows for the first one."""
    first = next(iter(runs.values()))
    low, high = first.chance
    axis.fill_between(
        100 * first.levels, 100 * low, 100 * high, color="0.85", label="chance (95 %)"
    )
    axis.plot([50, 100], [50, 100], label="as promised", **_DIAGONAL)
    for name, radii in runs.items():
        axis.plot(100 * radii.levels, 100 * radii.covered, "o-", color=colours[name], label=name)
    axis.set(xlabel="level (%)", ylabel="samples within their radius (%)")
    axis.set_xlim(48, 101)


def errors_and_radii(radii: Radii, outside: np.ndarray) -> Figure:
    """Draw each sample's error against its radius."""
    with chart_style():
        figure = new_figure(HALF, 3.4)
        axis = figure.subplots()
        draw_errors(axis, radii, outside)
        axis.legend(loc="upper left")
    return figure


def draw_errors(axis: Axes, radii: Radii, outside: np.ndarray) -> None:
    """Draw errors against radii; above the diagonal the radius did not hold."""
    marks = {
        "within": (radii.held & ~outside, "o", LEARNED),
        "beyond": (~radii.held & ~outside, "^", ERROR),
        "input outside": (outside, "s", "black"),
    }
    sound = np.isfinite(radii.errors) & np.isfinite(radii.radii)
    for label, (chosen, shape, look) in marks.items():
        if (chosen & sound).any():
            x, y = (100 * one[chosen & sound] for one in (radii.radii, radii.errors))
            axis.plot(x, y, shape, color=look, label=label, **_DOTS)
    _against(axis, 100 * radii.radii[sound], 100 * radii.errors[sound])
    axis.set(xlabel=f"radius at level {radii.level:g} (%)", ylabel="error of the sample (%)")


def certificates(proofs: Proofs) -> Figure:
    """Draw the proven bounds of each sample against its true error, in the energy norm."""
    x, upper, lower = (100 * one for one in (proofs.errors, proofs.upper, proofs.lower))
    with chart_style():
        figure = new_figure(HALF, 3.4)
        axis = figure.subplots()
        axis.plot(x, upper, "v", color=ERROR, label="upper bound", **_DOTS)
        axis.plot(x, lower, "^", color=LEARNED, label="lower bound", **_DOTS)
        _against(axis, x, np.concatenate([upper, lower]))
        axis.set(xlabel="true error, energy norm (%)", ylabel="bound (%)")
        axis.legend(loc="upper left")
    return figure


def distances(trust: TrustSamples) -> Figure:
    """Draw how many inputs are how far from the training inputs, and the limit."""
    values, outside = trust.distances, trust.outside
    span = (float(values.min()), max(float(values.max()), 1.05))
    wide = span[1] > 10 and span[0] > 0
    spaced = np.geomspace if wide else np.linspace
    edges = spaced(*span, 1 + min(_BINS, round(3 * len(values) ** 0.5)))
    with chart_style():
        figure = new_figure(HALF, 3.0)
        axis = figure.subplots()
        parts = {"known": (values[~outside], LEARNED), "outside": (values[outside], ERROR)}
        shown = {f"{k}: {len(one)}": (one, look) for k, (one, look) in parts.items() if len(one)}
        axis.hist(
            [one for one, _ in shown.values()],
            list(edges),
            color=[look for _, look in shown.values()],
            label=list(shown),
            stacked=True,
        )
        axis.axvline(1.0, color="black", linestyle="--", label="limit")
        if wide:
            log_axis(axis, "x", span)
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axis.set(xlabel="largest distance from the training inputs", ylabel="samples")
        figure.legend(loc="outside upper center", ncols=3)
    return figure


def _against(axis: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Scale both axes alike, logarithmically if need be, and draw the diagonal."""
    every = np.concatenate([x, y])
    every = every[np.isfinite(every) & (every > 0)]
    if not len(every):
        return
    low, high = float(every.min()), float(every.max())
    for which in ("x", "y"):
        log_axis(axis, which, [low, high])
    axis.plot([low, high], [low, high], **_DIAGONAL)
