"""The charts of trust: reliability, radii, certificates, distances of inputs; with their tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from twoscale.report.axes import ERROR, GREY, LEARNED, log_axis, one_panel
from twoscale.report.picture import Chart, ChartTable
from twoscale.report.run_trust import Proofs, Radii, TrustSamples

_BINS = 24  # of a histogram, at most
_DIAGONAL: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
_DOTS: dict[str, Any] = {
    "linestyle": "none",
    "markersize": 5,
    "markeredgecolor": "white",
    "markeredgewidth": 0.4,
}


def trust_charts(numbers: np.ndarray, trust: TrustSamples) -> Iterator[Chart]:
    """Yield what is known of samples with these numbers."""
    if (radii := trust.radii) is not None:
        yield _reliability_chart(radii)
        yield _radius_chart(numbers, radii, trust.outside[: len(radii.errors)])
    if (proofs := trust.proofs) is not None:
        yield _proof_chart(numbers, proofs)
    columns = {"sample": numbers, "distance": trust.distances}
    yield Chart(
        "distances",
        "Which inputs are known",
        "How far each input is from the training inputs: the largest of its distances in "
        "roughness, coarse shape and range of values. Beyond the limit an input is outside, and "
        f"nothing is promised for it: {int(trust.outside.sum())} of {len(trust.outside)}.",
        lambda: distance_bars(trust.distances),
        ChartTable.of(columns, "Above 1 the input is outside."),
    )


def _reliability_chart(radii: Radii) -> Chart:
    values = (radii.levels, radii.covered, *radii.chance)
    headings = ("level %", "within %", "by chance from %", "to %")
    columns = {name: 100 * one for name, one in zip(headings, values, strict=True)}
    return Chart(
        "reliability",
        "How often radii hold",
        "Share of samples whose error is within its radius, at each level. On the dashed line "
        "radii hold as often as they promise. Grey is what chance allows with "
        f"{radii.calibrated} calibration and {len(radii.errors)} test samples.",
        lambda: _drawn(draw_reliability, {"this run": radii}, {"this run": LEARNED}),
        ChartTable.of(columns, f"Calibrated on {radii.calibrated} samples."),
    )


def _drawn(draw: Any, *values: Any) -> Figure:
    """Return a figure that a function draws into an axis, with a legend."""
    figure, axis = one_panel(3.4)
    draw(axis, *values)
    axis.legend()
    return figure


def draw_reliability(axis: Axes, runs: Mapping[str, Radii], colours: Mapping[str, str]) -> None:
    """Draw the share of samples within their radius of each run, and what chance allows one."""
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


def _radius_chart(numbers: np.ndarray, radii: Radii, outside: np.ndarray) -> Chart:
    columns = {
        "sample": numbers[: len(radii.errors)],
        "error %": 100 * radii.errors,
        "radius %": 100 * radii.radii,
        "input outside": outside,
    }
    return Chart(
        "radii",
        "Errors and radii",
        "Each sample's error against its radius, which is known without the truth. Above the "
        f"dashed line the radius did not hold: {int((~radii.held).sum())} of {len(radii.errors)}. "
        "The more radii differ, the more they tell which samples are difficult.",
        lambda: _drawn(draw_errors, radii, outside),
        ChartTable.of(columns, "Relative to the size of the prediction."),
    )


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
    _add_diagonal(axis, 100 * radii.radii[sound], 100 * radii.errors[sound])
    axis.set(xlabel=f"radius at level {radii.level:g} (%)", ylabel="error of the sample (%)")


def _proof_chart(numbers: np.ndarray, proofs: Proofs) -> Chart:
    columns = {
        "sample": numbers[: len(proofs.errors)],
        "lower bound %": 100 * proofs.lower,
        "true error %": 100 * proofs.errors,
        "upper bound %": 100 * proofs.upper,
    }
    table = ChartTable.of(columns)
    return Chart(
        "certificates",
        "Proven bounds and true errors",
        "Bounds of each sample's relative error in the energy norm, which follow from the equation "
        "alone, against the true error. True errors lie on the dashed line.",
        lambda: _drawn(_draw_bounds, table),
        table,
    )


def _draw_bounds(axis: Axes, table: ChartTable) -> None:
    x, lower, upper = (table[f"{name} %"] for name in ("true error", "lower bound", "upper bound"))
    axis.plot(x, upper, "v", color=ERROR, label="upper bound", **_DOTS)
    axis.plot(x, lower, "^", color=LEARNED, label="lower bound", **_DOTS)
    _add_diagonal(axis, x, np.concatenate([upper, lower]))
    axis.set(xlabel="true error, energy norm (%)", ylabel="bound (%)")


def distance_bars(distances: np.ndarray) -> Figure:
    """Draw how many inputs are how far from the training inputs, and the limit."""
    span = (float(distances.min()), max(float(distances.max()), 1.05))
    wide = span[1] > 10 and span[0] > 0
    spaced = np.geomspace if wide else np.linspace
    edges = spaced(*span, 1 + min(_BINS, round(3 * len(distances) ** 0.5)))
    figure, axis = one_panel(3.0)
    known = distances <= 1
    parts = {"known": (distances[known], LEARNED), "outside": (distances[~known], ERROR)}
    shown = {f"{name}: {len(one)}": (one, look) for name, (one, look) in parts.items() if len(one)}
    values, looks = zip(*shown.values(), strict=True)
    axis.hist(values, list(edges), color=looks, label=list(shown), stacked=True)
    axis.axvline(1.0, color="black", linestyle="--", label="limit")
    if wide:
        log_axis(axis, "x", span)
    axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set(xlabel="largest distance from the training inputs", ylabel="samples")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def _add_diagonal(axis: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Scale both axes alike, logarithmically if need be, and draw the diagonal."""
    every = np.concatenate([x, y])
    every = every[np.isfinite(every) & (every > 0)]
    if len(every):
        low, high = float(every.min()), float(every.max())
        for which in ("x", "y"):
            log_axis(axis, which, [low, high])
        axis.plot([low, high], [low, high], **_DIAGONAL)
