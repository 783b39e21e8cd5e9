"""The charts of runs: errors, places, spectra, seams, times, candidates; each with its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from twoscale.report.axes import (
    ERROR,
    GREY,
    HALF,
    LEARNED,
    ORACLE,
    Point,
    bar,
    label_points,
    log_axis,
    new_figure,
    one_panel,
    pareto_front,
    stage_look,
)
from twoscale.report.display import display
from twoscale.report.field_pictures import (
    channel_names,
    error_map,
    sample_strip,
    short,
    shown_channels,
)
from twoscale.report.method_looks import colour, marker
from twoscale.report.picture import Chart, ChartTable
from twoscale.report.run_record import RunRecord
from twoscale.report.run_samples import SPECTRA, RunSamples, SamplePrediction
from twoscale.runtime.texts import percent, short_duration_text
from twoscale.search.findings import MEANINGS
from twoscale.search.record import HEADINGS, table_rows

_BAR = 0.36  # inches of a horizontal bar
_BINS = 24  # of a histogram, at most
_MANY = 10.0  # times the smallest: a histogram is then logarithmic
_MOST_NODES = 4096  # of a map whose numbers a page holds
_MOST_EPOCHS = 500  # of a history whose numbers a page holds; more are thinned
_CAUSES = {"representation": "#E69F00", "predictor": "#0072B2", "data": "#CC79A7"}
_SPECTRA = {"truth": ("#000000", "-", 2.5), "prediction": (LEARNED, "-", 1.3)}
_SPECTRA |= {"error": (ERROR, "--", 1.3)}
_PLACES = {"seams": ("at borders", ERROR), "inside": ("inside", GREY)}


def sample_chart(
    run: RunRecord, name: str, title: str, sample: SamplePrediction, *, columns: int = 2
) -> Chart:
    """Return the picture of one sample, in `columns` if it has a single input and channel."""
    names, inputs = channel_names(run.surrogate.output_space_), run.surrogate.input_space_.names
    seams = None if run.samples is None else run.samples.seams

    def draw(across: int) -> Figure:
        return sample_strip(sample, names, inputs or (), seams, columns=across)

    channels, drawn = len(sample.truth), shown_channels(len(sample.truth))
    caption = (
        f"Sample {sample.number} of the data: input, truth, prediction, and error"
        f"{', with patch borders' if seams is not None else ''}. Its error is "
        f"{percent(sample.error)}."
    )
    if run.prediction_seconds:
        caption += f" A prediction takes {short_duration_text(run.prediction_seconds)}."
    caption += " Truth and prediction share a scale."
    if channels > drawn:
        caption += f" The first {drawn} of {channels} channels are shown."
    narrow = (lambda: draw(2)) if columns > 2 and channels == 1 else None
    return Chart(name, title, caption, lambda: draw(columns), vector=False, narrow=narrow)


# Errors


def error_chart(run: RunRecord, samples: RunSamples) -> Chart:
    """Return how many samples have which error."""
    names, method = run.metrics.get("channels", {}), run.surrogate.method
    columns = {"sample": samples.numbers, "error %": 100 * samples.errors}
    for place, name in enumerate(names):
        columns[f"{name} %"] = 100 * samples.channel_errors[:, place]
    return Chart(
        "histogram",
        "Errors of single samples",
        "Each sample's relative error. A long tail to the right means that a few inputs are much "
        "harder than the rest.",
        lambda: histogram({method: samples.errors}, {method: colour(method)}),
        ChartTable.of(columns),
    )


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
    figure, axis = one_panel(3.0)
    alone = len(found) == 1
    look: dict[str, Any] = {"alpha": 0.75, "histtype": "stepfilled", "label": None}
    for name, values in found.items():
        if not alone:
            look = {"alpha": 1.0, "histtype": "step", "label": short(name)}
        axis.hist(values, list(edges), color=colours[name], linewidth=1.6, **look)
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


def share_chart(shares: Mapping[str, float]) -> Chart:
    """Return the shares of the squared error by their cause."""
    looks = {name: (_CAUSES[name], "") for name in shares}
    values = {name: 100 * share for name, share in shares.items()}
    return Chart(
        "shares",
        "What limits the error",
        "Shares of the squared error: what the code cannot express (representation), what was not "
        "learned (predictor), what was learned on training samples only (data).",
        lambda: _stacked(values, looks, "share of the squared error (%)", "%"),
        ChartTable.of(
            {"cause": values, "share %": values.values(), "meaning": map(MEANINGS.get, values)}
        ),
    )


def _stacked(
    values: Mapping[str, float], looks: Mapping[str, tuple[str, str]], words: str, unit: str
) -> Figure:
    """Draw values as one bar."""
    figure, axis = one_panel(1.3 + 0.2 * -(-len(values) // 2))
    left = 0.0
    for name, value in values.items():
        label = f"{short(name)} {value:.2g} {unit}"
        axis.barh(0, value, left=left, label=label, **bar(*looks[name]))
        left += value
    axis.set(yticks=[], xlabel=words)
    axis.grid(axis="y", visible=False)
    axis.margins(x=0)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def channel_chart(channels: Mapping[str, Mapping[str, Any]]) -> Chart:
    """Return the error of each channel, and what its representation alone has."""
    keys = {"mean_relative_l2": "mean error %", "mre": "MRE %", "oracle_mre": "oracle MRE %"}
    columns: dict[str, Any] = {"channel": list(channels)}
    for key, heading in keys.items():
        found = [values.get(key) for values in channels.values()]
        columns[heading] = [None if value is None else 100 * value for value in found]
    table = ChartTable.of(columns)
    return Chart(
        "channels",
        "Errors of the channels",
        "Each channel's relative error, and that of its representation alone.",
        lambda: _channel_bars(list(channels), table),
        table,
    )


def _channel_bars(names: Sequence[str], table: ChartTable) -> Figure:
    figure, axis = one_panel(0.9 + 2 * _BAR * len(names))
    for heading, look, shift in (("MRE %", LEARNED, -0.2), ("oracle MRE %", ORACLE, 0.2)):
        for place, value in enumerate(table[heading]):
            if np.isfinite(value):
                drawn = axis.barh(place + shift, value, **bar(look, "") | {"height": 0.38})
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


# Places and scales


def map_chart(run: RunRecord, samples: RunSamples) -> Chart:
    """Return the error at each node; with numbers, of all channels together, if it is small."""
    names = channel_names(run.surrogate.output_space_)
    values = 100 * np.sqrt(np.square(samples.error_map).mean(0))
    rows = [[place, *row] for place, row in enumerate(values)]
    header = ["row", *(f"column {place}" for place in range(values.shape[1]))]
    table = ChartTable(header, rows, "Percent; root mean square of all channels.")
    return Chart(
        "map",
        "Where the error sits",
        "Root mean square error at each node, in percent of the root mean square of the true "
        f"values.{' Thin lines are patch borders.' if samples.seams is not None else ''}",
        lambda: error_map(samples, names),
        table if values.size <= _MOST_NODES else None,
        vector=False,
    )


def spectrum_chart(run: RunRecord, samples: RunSamples) -> Chart:
    """Return the mean energy of truth, prediction and error against the wave number."""
    space = run.surrogate.output_space_
    several = space.channels > 1
    columns: dict[str, Any] = {"wave number": range(samples.spectra["truth"].shape[1])}
    for place, name in enumerate(space.channel_names):
        for kind in SPECTRA:
            columns[f"{kind}, {name}" if several else kind] = samples.spectra[kind][place]
    return Chart(
        "spectra",
        "Which scales are wrong",
        "Mean energy of truth, prediction and error at each wave number. Where the error reaches "
        "the truth, that scale is not predicted.",
        lambda: _spectra(samples, channel_names(space)),
        ChartTable.of(columns),
    )


def _spectra(samples: RunSamples, names: Sequence[str]) -> Figure:
    shown = shown_channels(len(samples.error_map))
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


def seam_chart(jumps: Mapping[str, Mapping[str, float]]) -> Chart:
    """Return the jumps of the error at patch borders and inside of patches."""
    columns: dict[str, Any] = {
        "quantity": [display(name).words.replace(" at seams", "") for name in jumps["seams"]]
    }
    columns |= {_PLACES[place][0]: list(values.values()) for place, values in jumps.items()}
    return Chart(
        "seams",
        "Jumps at patch borders and inside of patches",
        "Mean jump of the error between neighbouring nodes, in value and in slope.",
        lambda: _seam_bars(jumps),
        ChartTable.of(columns),
    )


def _seam_bars(jumps: Mapping[str, Mapping[str, float]]) -> Figure:
    quantities = {"value": "value_trace_error", "slope": "normal_derivative_trace_error"}
    figure = new_figure(HALF, 2.4)
    for axis, (title, key) in zip(figure.subplots(1, 2), quantities.items(), strict=True):
        labels, colours = zip(*(_PLACES[place] for place in jumps), strict=True)
        drawn = axis.bar(labels, [one[key] for one in jumps.values()], color=colours, width=0.6)
        axis.bar_label(drawn, fmt="%.2g", fontsize=8)
        axis.set_title(f"error's jump in {title}")
        axis.margins(y=0.15)
        axis.grid(axis="x", visible=False)
        axis.ticklabel_format(axis="y", scilimits=(-2, 3))
    return figure


# Time and training


def timing_chart(run: RunRecord) -> Chart:
    """Return the seconds of each stage."""
    timings: Mapping[str, float] = run.metrics["timings"]
    stages = {name: value for name, value in timings.items() if name != "total" and value > 0}
    values = {display(name).words: value for name, value in stages.items()}
    looks = {display(name).words: stage_look(name) for name in stages}
    return Chart(
        "timings",
        "Time by stage",
        "Seconds of the fit and of predicting all test samples."
        + (" The fit is that of the chosen candidate." if run.search else ""),
        lambda: _stacked(values, looks, "seconds", "s"),
        ChartTable(["stage", "s"], [[display(name).words, s] for name, s in timings.items()]),
    )


def loss_chart(histories: Mapping[str, Mapping[str, Any]]) -> Chart:
    """Return training and validation loss against epochs, a panel for each trained network."""
    columns: dict[str, Any] = {}
    for name, history in histories.items():
        for kind in ("training loss", "validation loss"):
            columns[f"{name}, {kind}"] = history[kind.replace(" ", "_")]
    epochs = max(map(len, columns.values()))
    step = max(1, -(-epochs // _MOST_EPOCHS))
    thinned = {name: values[::step] for name, values in columns.items()}
    return Chart(
        "losses",
        "Loss during training",
        "Training and validation loss of each epoch. If validation stays above training, more "
        "samples help. If both still fall at the end, longer training helps.",
        lambda: _losses(histories),
        ChartTable.of({"epoch": range(0, epochs, step), **thinned}),
    )


def _losses(histories: Mapping[str, Mapping[str, Any]]) -> Figure:
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


# Error against time


def candidate_charts(search: Mapping[str, Any]) -> Iterator[Chart]:
    """Yield validation error against time of a search's candidates, if any was fitted."""
    fitted = {
        place: trial
        for place, trial in enumerate(search["trials"])
        if trial["failure"] is None and trial["error"] > 0 and trial["seconds"] > 0
    }
    points = {k: (trial["seconds"], 100 * trial["error"]) for k, trial in fitted.items()}
    best = pareto_front(list(points.values()))
    named = {k: f"{k + 1} {fitted[k]['label']}" for k, point in points.items() if point in best}
    methods = {k: trial["method"] for k, trial in fitted.items()}
    if points:
        yield Chart(
            "candidates",
            "Candidates of the search",
            "Validation error against the time of each candidate. The ring marks the chosen one. "
            "The dashed line joins candidates that no other one beats in both. Numbers are table "
            "rows.",
            lambda: _error_against_time(
                points, methods, named, "mean relative error (%)", ring=search["chosen"]
            ),
            ChartTable(HEADINGS, table_rows(search)),
        )


def run_charts(runs: Mapping[str, RunRecord]) -> Iterator[Chart]:
    """Yield the error of runs against their time, if any has both."""
    points = {
        name: (run.fit_seconds, 100 * run.error)
        for name, run in runs.items()
        if run.error and run.fit_seconds > 0
    }
    methods = {name: run.surrogate.method for name, run in runs.items()}
    names = {name: short(name) for name in points}
    if points:
        yield Chart(
            "error-time",
            "Error against time",
            "Error on the test samples and seconds of the fit. The dashed line joins runs that no "
            "other one beats in both.",
            lambda: _error_against_time(points, methods, names, display("mre").axis),
            ChartTable(["run", "s", "error %"], [[name, *one] for name, one in points.items()]),
        )


def _error_against_time(
    points: Mapping[Any, Point],
    methods: Mapping[Any, str],
    names: Mapping[Any, str],
    words: str,
    *,
    ring: object = None,
) -> Figure:
    """Draw errors in percent against seconds, in the colours of methods; some have names."""
    figure, axis = one_panel(3.6)
    best = pareto_front(list(points.values()))
    if len(best) > 1:
        axis.plot(*zip(*best, strict=True), color="#9aa3ad", linestyle="--", linewidth=1, zorder=1)
    look: dict[str, Any] = {"linestyle": "none", "markersize": 9, "markeredgecolor": "white"}
    for key, point in points.items():
        axis.plot(*point, color=colour(methods[key]), marker=marker(methods[key]), **look)
    if ring in points:
        axis.plot(*points[ring], "o", ms=14, mfc="none", color="black", zorder=3)
    for which, values in zip("xy", zip(*points.values(), strict=True), strict=True):
        log_axis(axis, which, values)
    axis.margins(0.15)
    axis.set(xlabel="seconds of the fit", ylabel=words)
    label_points(axis, {name: points[key] for key, name in names.items()})
    return figure
