"""The charts of a run's report: errors, spectra, seams, times, candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from twoscale.report.axes import (
    GREY,
    bar,
    chart_style,
    label_points,
    log_axis,
    new_figure,
    pareto_front,
    stage_look,
)
from twoscale.report.display import display
from twoscale.report.method_looks import colour, marker
from twoscale.report.run_fields import HALF, PREDICTION, short, shown_channels
from twoscale.report.run_samples import RunSamples
from twoscale.runtime.texts import percent

_BAR = 0.36  # inches of a horizontal bar
_BINS = 24  # of a histogram, at most
_MANY = 10.0  # times the smallest: a histogram is then logarithmic
ERROR, LEARNED, ORACLE = "#D55E00", "#0072B2", "#999999"
_CAUSES = {"representation": "#E69F00", "predictor": "#0072B2", "data": "#CC79A7"}
_SPECTRA = {"truth": ("#000000", "-", 2.5), "prediction": (PREDICTION, "-", 1.3)}
_SPECTRA |= {"error": (ERROR, "--", 1.3)}


# Errors


def histogram(errors: Mapping[str, np.ndarray], colours: Mapping[str, str]) -> Figure:
    """Draw how many samples have which error; of one run with mean, median and 95 % quantile."""
    found = {name: 100 * values[np.isfinite(values)] for name, values in errors.items()}
    every = np.concatenate(list(found.values()))
    bins = 1 + min(_BINS, round(3 * len(every) ** 0.5))
    low, high = float(every.min()), float(every.max())
    logarithmic = low > 0 and high > _MANY * low
    edges = np.geomspace(low, high, bins) if logarithmic else np.linspace(low, high, bins)
    if high <= low:
        edges = np.linspace(low - 0.5 * abs(low) - 1e-12, low + 0.5 * abs(low) + 1e-12, 4)
    alone = len(found) == 1
    with chart_style():
        figure = new_figure(HALF, 3.0)
        axis = figure.subplots()
        for name, values in found.items():
            axis.hist(
                values,
                list(edges),
                color=colours[name],
                alpha=0.75 if alone else 1.0,
                histtype="stepfilled" if alone else "step",
                linewidth=1.6,
                label=None if alone else short(name),
            )
        if alone:
            _mark_quantiles(axis, next(iter(found.values())))
        if logarithmic:
            log_axis(axis, "x", [low, high])
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axis.set(xlabel="relative error of a sample (%)", ylabel="samples")
        figure.legend(loc="outside upper center", ncols=2)
    return figure


def _mark_quantiles(axis: Axes, values: np.ndarray) -> None:
    marks = {"mean": values.mean(), "median": np.median(values)}
    marks["95 % quantile"] = np.quantile(values, 0.95)
    for (name, value), line in zip(marks.items(), ("-", "--", ":"), strict=True):
        axis.axvline(value, color="black", linestyle=line, label=f"{name} {percent(value / 100)}")


def channel_bars(channels: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw the error of each channel, and what its representation alone has."""
    names = list(channels)
    with chart_style():
        figure = new_figure(HALF, 0.9 + 2 * _BAR * len(names))
        axis = figure.subplots()
        for place, name in enumerate(names):
            for key, look, shift in (("mre", LEARNED, -0.2), ("oracle_mre", ORACLE, 0.2)):
                value = channels[name].get(key)
                if value is not None:
                    options = bar(look, "") | {"height": 0.38}
                    drawn = axis.barh(place + shift, 100 * value, **options)
                    axis.bar_label(drawn, fmt="%.3g", fontsize=8, padding=2)
        axis.set_yticks(range(len(names)), [short(name) for name in names])
        axis.invert_yaxis()
        axis.margins(x=0.15)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(display("mre").axis)
        words = {"learned": LEARNED, "oracle: the representation alone": ORACLE}
        handles = [Patch(color=look, label=name) for name, look in words.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def spectra(samples: RunSamples, names: Sequence[str]) -> Figure:
    """Draw the mean energy of truth, prediction and error against the wave number."""
    shown = shown_channels(len(samples.error_map))
    with chart_style():
        figure = new_figure(HALF, 0.4 + 2.2 * shown if shown > 1 else 3.0)
        axes = figure.subplots(shown, squeeze=False)[:, 0]
        for place, axis in enumerate(axes):
            for name, (line_colour, style, width) in _SPECTRA.items():
                energy = samples.spectra[name][place][1:]
                waves = np.arange(1, len(energy) + 1)
                axis.plot(waves, energy, style, color=line_colour, linewidth=width, label=name)
            axis.set(xscale="log", yscale="log", ylabel="mean energy")
            log_axis(axis, "x", [1.0, float(samples.spectra["truth"].shape[1])])
            if names:
                axis.set_title(short(names[place]))
        axes[-1].set_xlabel("wave number")
        axes[0].legend()
    return figure


def seam_bars(jumps: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw the jumps of the error in value and in slope, at patch borders and inside of patches."""
    quantities = {"value": "value_trace_error", "slope": "normal_derivative_trace_error"}
    with chart_style():
        figure = new_figure(HALF, 2.4)
        axes = figure.subplots(1, 2)
        for axis, (title, key) in zip(axes, quantities.items(), strict=True):
            heights = {place: jumps[place][key] for place in ("seams", "inside") if place in jumps}
            labels = {"seams": "at borders", "inside": "inside"}
            drawn = axis.bar(
                [labels[place] for place in heights],
                list(heights.values()),
                color=[ERROR, GREY][: len(heights)],
                width=0.6,
            )
            axis.bar_label(drawn, fmt="%.2g", fontsize=8)
            axis.set_title(f"error's jump in {title}")
            axis.margins(y=0.15)
            axis.grid(axis="x", visible=False)
            axis.ticklabel_format(axis="y", scilimits=(-2, 3))
    return figure


# Causes, time, training


def share_bar(shares: Mapping[str, float]) -> Figure:
    """Draw the shares of the squared error by their cause as one bar."""
    return _stacked(
        {name: 100 * share for name, share in shares.items()},
        {name: (_CAUSES[name], "") for name in shares},
        xlabel="share of the squared error (%)",
        unit="%",
    )


def timing_bar(timings: Mapping[str, float]) -> Figure:
    """Draw the seconds of each stage as one bar."""
    stages = {name: value for name, value in timings.items() if name != "total" and value > 0}
    return _stacked(
        {display(name).words: value for name, value in stages.items()},
        {display(name).words: stage_look(name) for name in stages},
        xlabel="seconds",
        unit="s",
    )


def _stacked(
    parts: Mapping[str, float],
    looks: Mapping[str, tuple[str, str]],
    *,
    xlabel: str,
    unit: str,
) -> Figure:
    with chart_style():
        figure = new_figure(HALF, 1.3 + 0.2 * -(-len(parts) // 2))
        axis = figure.subplots()
        left = 0.0
        for name, value in parts.items():
            label = f"{short(name)} {value:.2g} {unit}"
            axis.barh(0, value, left=left, label=label, **bar(*looks[name]))
            left += value
        axis.set_yticks([])
        axis.set_xlabel(xlabel)
        axis.grid(axis="y", visible=False)
        axis.margins(x=0)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def losses(histories: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw training and validation loss against epochs, one panel per trained network."""
    with chart_style():
        figure = new_figure(HALF, 2.6 * len(histories) + 0.3)
        axes = figure.subplots(len(histories), squeeze=False)[:, 0]
        for axis, (name, history) in zip(axes, histories.items(), strict=True):
            axis.plot(history["training_loss"], color=LEARNED, label="training")
            axis.plot(history["validation_loss"], color=ERROR, label="validation")
            log_axis(axis, "y", [*history["training_loss"], *history["validation_loss"]])
            axis.axvline(history["best_epoch"], color="0.5", linestyle="--", label="weights kept")
            axis.set(xlabel="epoch", ylabel="loss", title=name if len(histories) > 1 else "")
            axis.legend()
    return figure


# Several


def candidates(search: Mapping[str, Any]) -> Figure | None:
    """Draw validation error against time of all candidates of a search; None without any.

    A dashed line joins those that no other beats in both. The chosen one has a ring.
    """
    fitted = {
        place: trial
        for place, trial in enumerate(search["trials"])
        if trial["failure"] is None and trial["error"] > 0 and trial["seconds"] > 0
    }
    if not fitted:
        return None
    points = {k: (trial["seconds"], 100 * trial["error"]) for k, trial in fitted.items()}
    with chart_style():
        figure = new_figure(HALF, 3.6)
        axis = figure.subplots()
        _front(axis, list(points.values()))
        for place, trial in fitted.items():
            _point(axis, points[place], trial["method"])
        if search["chosen"] in points:
            axis.plot(*points[search["chosen"]], "o", ms=14, mfc="none", color="black", zorder=3)
        _error_against_time(axis, list(points.values()), "mean relative error (%)")
        best = {tuple(point) for point in pareto_front(list(points.values()))}
        named = {_name_of(fitted[k], k): point for k, point in points.items() if point in best}
        label_points(axis, named)
    return figure


def _name_of(trial: Mapping[str, Any], place: int) -> str:
    return f"{place + 1} {trial['label']}"


def runs_scatter(points: Mapping[str, tuple[float, float]], methods: Mapping[str, str]) -> Figure:
    """Draw the error of runs (fractions) against their time; a name stands beside each point."""
    places = {name: (seconds, 100 * error) for name, (seconds, error) in points.items()}
    with chart_style():
        figure = new_figure(HALF, 3.6)
        axis = figure.subplots()
        _front(axis, list(places.values()))
        for name, place in places.items():
            _point(axis, place, methods[name])
        _error_against_time(axis, list(places.values()), display("mre").axis)
        label_points(axis, {short(name): place for name, place in places.items()})
    return figure


def _point(axis: Axes, place: tuple[float, float], method: str) -> None:
    """Draw a point in a method's colour and with its marker."""
    axis.plot(
        *place,
        color=colour(method),
        marker=marker(method),
        linestyle="none",
        markersize=9,
        markeredgecolor="white",
    )


def _front(axis: Axes, points: Sequence[tuple[float, float]]) -> None:
    best = pareto_front(points)
    if len(best) > 1:
        axis.plot(*zip(*best, strict=True), color="#9aa3ad", linestyle="--", linewidth=1, zorder=1)


def _error_against_time(axis: Axes, points: Sequence[tuple[float, float]], ylabel: str) -> None:
    for which, values in zip("xy", zip(*points, strict=True), strict=True):
        log_axis(axis, which, values)
    axis.margins(0.15)
    axis.set(xlabel="seconds of the fit", ylabel=ylabel)
