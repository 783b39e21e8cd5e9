"""The charts of trust: reliability, radii, certificates, distances of inputs; with their tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from twoscale.report.axes import ERROR, GREY, LEARNED, log_axis, one_panel
from twoscale.report.picture import ChartTable, Drawing, PicturePlan, chart
from twoscale.report.run_trust import Proofs, Radii, TrustSamples

_BINS = 24  # of a histogram, at most
_DIAGONAL: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
_DOTS: dict[str, Any] = {
    "linestyle": "none",
    "markersize": 5,
    "markeredgecolor": "white",
    "markeredgewidth": 0.4,
}


def trust_charts(numbers: np.ndarray, trust: TrustSamples) -> Iterator[PicturePlan]:
    """Yield what is known of samples with these numbers."""
    if trust.radii is not None:
        yield reliability(trust.radii)
        yield errors_and_radii(numbers, trust.radii, trust.outside)
    if trust.proofs is not None:
        yield certificates(numbers, trust.proofs)
    yield distances(numbers, trust)


@chart("How often radii hold")
def reliability(radii: Radii) -> Drawing:
    """Share of samples whose error is within its radius, at each level. On the dashed line radii
    hold as often as they promise. Grey is what chance allows.
    """
    values = (radii.levels, radii.covered, *radii.chance)
    headings = ("level %", "within %", "by chance from %", "to %")
    figure, axis = one_panel(3.4)
    draw_reliability(axis, {"this run": radii}, {"this run": LEARNED})
    axis.legend(loc="lower right")
    samples = f"{radii.calibrated} calibration and {len(radii.errors)} test samples"
    columns = {name: 100 * column for name, column in zip(headings, values, strict=True)}
    return Drawing(figure, ChartTable.of(columns), f"These are {samples}.")


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


@chart("Errors and radii")
def errors_and_radii(numbers: np.ndarray, radii: Radii, outside: np.ndarray) -> Drawing:
    """Each sample's error against its radius, which is known without the truth. Above the dashed
    line the radius did not hold. The more radii differ, the more they tell which samples are
    difficult.
    """
    outside = outside[: len(radii.errors)]
    columns = {
        "sample": numbers[: len(radii.errors)],
        "error %": 100 * radii.errors,
        "radius %": 100 * radii.radii,
        "input outside": outside,
    }
    figure, axis = one_panel(3.4)
    draw_errors(axis, radii, outside)
    axis.legend(loc="upper left")
    broken = f"{int((~radii.held).sum())} of {len(radii.errors)} radii did not hold."
    return Drawing(
        figure, ChartTable.of(columns, "Relative to the size of the prediction."), broken
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


@chart("Proven bounds and true errors")
def certificates(numbers: np.ndarray, proofs: Proofs) -> Drawing:
    """Bounds of each sample's relative error in the energy norm, which follow from the equation
    alone, against the true error. True errors lie on the dashed line.
    """
    x, lower, upper = (100 * one for one in (proofs.errors, proofs.lower, proofs.upper))
    columns = {
        "sample": numbers[: len(x)],
        "lower bound %": lower,
        "true error %": x,
        "upper bound %": upper,
    }
    figure, axis = one_panel(3.4)
    axis.plot(x, upper, "v", color=ERROR, label="upper bound", **_DOTS)
    axis.plot(x, lower, "^", color=LEARNED, label="lower bound", **_DOTS)
    _add_diagonal(axis, x, np.concatenate([upper, lower]))
    axis.set(xlabel="true error, energy norm (%)", ylabel="bound (%)")
    axis.legend(loc="upper left")
    return Drawing(figure, ChartTable.of(columns))


@chart("Which inputs are known")
def distances(numbers: np.ndarray, trust: TrustSamples) -> Drawing:
    """How far each input is from the training inputs: the largest of its distances in roughness,
    coarse shape and range of values. Beyond the limit an input is outside, and nothing is promised
    for it.
    """
    values, outside = trust.distances, trust.outside
    span = (float(values.min()), max(float(values.max()), 1.05))
    wide = span[1] > 10 and span[0] > 0
    spaced = np.geomspace if wide else np.linspace
    edges = spaced(*span, 1 + min(_BINS, round(3 * len(values) ** 0.5)))
    figure, axis = one_panel(3.0)
    parts = {"known": (values[~outside], LEARNED), "outside": (values[outside], ERROR)}
    shown = {f"{name}: {len(one)}": (one, look) for name, (one, look) in parts.items() if len(one)}
    groups, looks = zip(*shown.values(), strict=True)
    axis.hist(groups, list(edges), color=looks, label=list(shown), stacked=True)
    axis.axvline(1.0, color="black", linestyle="--", label="limit")
    if wide:
        log_axis(axis, "x", span)
    axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set(xlabel="largest distance from the training inputs", ylabel="samples")
    figure.legend(loc="outside upper center", ncols=3)
    table = ChartTable.of({"sample": numbers, "distance": values}, "Above 1 the input is outside.")
    return Drawing(figure, table, f"{int(outside.sum())} of {len(outside)} inputs are outside.")


def _add_diagonal(axis: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Scale both axes alike, logarithmically if need be, and draw the diagonal."""
    every = np.concatenate([x, y])
    every = every[np.isfinite(every) & (every > 0)]
    if len(every):
        low, high = float(every.min()), float(every.max())
        for which in ("x", "y"):
            log_axis(axis, which, [low, high])
        axis.plot([low, high], [low, high], **_DIAGONAL)
