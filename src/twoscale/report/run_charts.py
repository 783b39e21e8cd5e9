"""The charts of a run: samples, errors, places, spectra, seams, times; each with its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
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
    bar,
    log_axis,
    new_figure,
    one_panel,
    stage_look,
)
from twoscale.report.display import display
from twoscale.report.field_pictures import (
    channel_names,
    draw_field,
    panels_figure,
    sample_strip,
    short,
    shown_channels,
)
from twoscale.report.method_looks import colour
from twoscale.report.picture import ChartTable, Drawing, PicturePlan, chart
from twoscale.report.run_record import RunRecord
from twoscale.report.run_samples import SPECTRA, RunSamples, SamplePrediction
from twoscale.runtime.texts import percent, short_duration_text
from twoscale.search.advice import MEANINGS

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
    run: RunRecord, name: str, sample: SamplePrediction, *, columns: int = 2
) -> PicturePlan:
    """Return the picture of one sample, in `columns` if it has a single input and channel."""
    plan = _sample(run, sample, columns)
    return replace(plan, name=name, title=f"The {name} sample")


@chart("A sample", vector=False)
def _sample(run: RunRecord, sample: SamplePrediction, columns: int) -> Drawing:
    """Input, truth, prediction, and error. Truth and prediction share a scale."""
    names, inputs = channel_names(run.surrogate.output_space_), run.surrogate.input_space_.names
    seams = None if run.samples is None else run.samples.seams
    strip = partial(sample_strip, sample, names, inputs or (), seams)
    channels, drawn = len(sample.truth), shown_channels(len(sample.truth))
    words = ["Lines are patch borders."] if seams is not None else []
    words.append(f"This is sample {sample.number} of the data.")
    words.append(f"Its error is {percent(sample.error)}.")
    if run.prediction_seconds:
        words.append(f"A prediction takes {short_duration_text(run.prediction_seconds)}.")
    if channels > drawn:
        words.append(f"The first {drawn} of {channels} channels are shown.")
    narrow = strip(columns=2) if columns > 2 and channels == 1 else None
    return Drawing(strip(columns=columns), None, " ".join(words), narrow)


# Errors


@chart("Errors of single samples")
def histogram(run: RunRecord, samples: RunSamples) -> Drawing:
    """Each sample's relative error. A long tail to the right means that a few inputs are much
    harder than the rest.
    """
    method = run.surrogate.method
    columns = {"sample": samples.numbers, "error %": 100 * samples.errors}
    for place, name in enumerate(run.metrics.get("channels", {})):
        columns[f"{name} %"] = 100 * samples.channel_errors[:, place]
    figure = error_histogram({method: samples.errors}, {method: colour(method)})
    return Drawing(figure, ChartTable.of(columns))


def error_histogram(errors: Mapping[str, np.ndarray], colours: Mapping[str, str]) -> Figure:
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


@chart("What limits the error")
def shares(by_cause: Mapping[str, float]) -> Drawing:
    """Shares of the squared error: what the code cannot express (representation), what was not
    learned (predictor), what was learned on training samples only (data).
    """
    rows = [(name, 100 * share, MEANINGS[name]) for name, share in by_cause.items()]
    table = ChartTable(["cause", "share %", "meaning"], rows)
    looks = [(_CAUSES[name], "") for name in by_cause]
    return Drawing(_stacked(table, looks, "share of the squared error (%)", "%"), table)


def _stacked(table: ChartTable, looks: Sequence[tuple[str, str]], words: str, unit: str) -> Figure:
    """Draw the second column of a table as one bar, with the first one's names."""
    figure, axis = one_panel(1.3 + 0.2 * -(-len(looks) // 2))
    left = 0.0
    for (name, *_), value, look in zip(table.rows, table[table.header[1]], looks, strict=True):
        label = f"{short(str(name))} {value:.2g} {unit}"
        axis.barh(0, value, left=left, label=label, **bar(*look))
        left += value
    axis.set(yticks=[], xlabel=words)
    axis.grid(axis="y", visible=False)
    axis.margins(x=0)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


@chart("Errors of the channels")
def channels(measures: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Each channel's relative error, and that of its representation alone."""
    keys = {"mean_relative_l2": "mean error %", "mre": "MRE %", "oracle_mre": "oracle MRE %"}
    columns: dict[str, Any] = {"channel": list(measures)}
    for key, heading in keys.items():
        values = [own.get(key) for own in measures.values()]
        columns[heading] = [None if value is None else 100 * value for value in values]
    table = ChartTable.of(columns)
    figure, axis = one_panel(0.9 + 2 * _BAR * len(measures))
    for heading, look, shift in (("MRE %", LEARNED, -0.2), ("oracle MRE %", ORACLE, 0.2)):
        for place, value in enumerate(table[heading]):
            if np.isfinite(value):
                drawn = axis.barh(place + shift, value, **bar(look, "") | {"height": 0.38})
                axis.bar_label(drawn, fmt="%.3g", fontsize=8, padding=2)
    axis.set_yticks(range(len(measures)), [short(name) for name in measures])
    axis.invert_yaxis()
    axis.margins(x=0.15)
    axis.grid(axis="y", visible=False)
    axis.set_xlabel(display("mre").axis)
    words = {"learned": LEARNED, "oracle: the representation alone": ORACLE}
    handles = [Patch(color=look, label=name) for name, look in words.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return Drawing(figure, table)


# Places and scales


@chart("Where the error sits", vector=False)
def error_map(run: RunRecord, samples: RunSamples) -> Drawing:
    """Root mean square error at each node, in percent of the root mean square of the true
    values.
    """
    names = channel_names(run.surrogate.output_space_)
    shown = shown_channels(len(samples.error_map))
    panels = (-(-shown // 2), min(shown, 2))
    figure = panels_figure(HALF, panels, samples.error_map)
    axes = figure.subplots(*panels, squeeze=False).flatten()
    for place, axis in enumerate(axes):
        if place >= shown:
            axis.set_axis_off()
            continue
        values, title = 100 * samples.error_map[place], short(names[place]) if names else ""
        look: dict[str, Any] = {"vmin": 0.0, "vmax": float(values.max()) or 1.0, "cmap": "magma"}
        look |= {"scale": True, "marks": "white"}
        if draw_field(axis, values, title, samples.seams, **look) is None:
            axis.set_ylabel("RMS error (%)")
    values = 100 * np.sqrt(np.square(samples.error_map).mean(0))
    header = ["row", *(f"column {place}" for place in range(values.shape[1]))]
    rows = [[place, *row] for place, row in enumerate(values)]
    table = ChartTable(header, rows, "Percent; root mean square of all channels.")
    words = "" if samples.seams is None else "Thin lines are patch borders."
    return Drawing(figure, table if values.size <= _MOST_NODES else None, words)


@chart("Which scales are wrong")
def spectra(run: RunRecord, samples: RunSamples) -> Drawing:
    """Mean energy of truth, prediction and error at each wave number. Where the error reaches the
    truth, that scale is not predicted.
    """
    space = run.surrogate.output_space_
    names, shown = channel_names(space), shown_channels(space.channels)
    columns: dict[str, Any] = {"wave number": range(samples.spectra["truth"].shape[1])}
    for place, name in enumerate(space.channel_names):
        for kind in SPECTRA:
            columns[f"{kind}, {name}" if names else kind] = samples.spectra[kind][place]
    figure = new_figure(HALF, 0.4 + 2.2 * shown if shown > 1 else 3.0)
    axes = figure.subplots(shown, squeeze=False)[:, 0]
    for place, axis in enumerate(axes):
        for kind, (line_colour, style, width) in _SPECTRA.items():
            energy = samples.spectra[kind][place][1:]
            waves = np.arange(1, len(energy) + 1)
            axis.plot(waves, energy, style, color=line_colour, linewidth=width, label=kind)
        axis.set(xscale="log", yscale="log", ylabel="mean energy")
        log_axis(axis, "x", [1.0, float(samples.spectra["truth"].shape[1])])
        axis.set_title(short(names[place]) if names else "")
    axes[-1].set_xlabel("wave number")
    axes[0].legend()
    return Drawing(figure, ChartTable.of(columns))


@chart("Jumps at patch borders and inside of patches")
def seams(jumps: Mapping[str, Mapping[str, float]]) -> Drawing:
    """Mean jump of the error between neighbouring nodes, in value and in slope."""
    quantities = {"value": "value_trace_error", "slope": "normal_derivative_trace_error"}
    columns: dict[str, Any] = {"quantity": [display(name).quantity for name in jumps["seams"]]}
    columns |= {_PLACES[place][0]: own.values() for place, own in jumps.items()}
    figure = new_figure(HALF, 2.4)
    labels, colours = zip(*(_PLACES[place] for place in jumps), strict=True)
    for axis, (title, key) in zip(figure.subplots(1, 2), quantities.items(), strict=True):
        drawn = axis.bar(labels, [own[key] for own in jumps.values()], color=colours, width=0.6)
        axis.bar_label(drawn, fmt="%.2g", fontsize=8)
        axis.set_title(f"error's jump in {title}")
        axis.margins(y=0.15)
        axis.grid(axis="x", visible=False)
        axis.ticklabel_format(axis="y", scilimits=(-2, 3))
    return Drawing(figure, ChartTable.of(columns))


# Time and training


@chart("Time by stage")
def timings(run: RunRecord) -> Drawing:
    """Seconds of the fit and of predicting all test samples."""
    seconds: Mapping[str, float] = run.metrics["timings"]
    table = ChartTable(["stage", "s"], [[display(name).words, s] for name, s in seconds.items()])
    stages = [name for name, value in seconds.items() if name != "total" and value > 0]
    drawn = ChartTable(table.header, [[display(name).words, seconds[name]] for name in stages])
    figure = _stacked(drawn, [stage_look(name) for name in stages], "seconds", "s")
    return Drawing(figure, table, "The fit is that of the chosen candidate." if run.search else "")


@chart("Loss during training")
def losses(histories: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Training and validation loss of each epoch. If validation stays above training, more samples
    help. If both still fall at the end, longer training helps.
    """
    kinds = {"training": LEARNED, "validation": ERROR}
    epochs = max(len(history["training_loss"]) for history in histories.values())
    step = max(1, -(-epochs // _MOST_EPOCHS))
    columns: dict[str, Any] = {"epoch": range(0, epochs, step)}
    figure = new_figure(HALF, 2.6 * len(histories) + 0.3)
    axes = figure.subplots(len(histories), squeeze=False)[:, 0]
    for axis, (name, history) in zip(axes, histories.items(), strict=True):
        for kind, look in kinds.items():
            columns[f"{name}, {kind} loss"] = history[f"{kind}_loss"][::step]
            axis.plot(history[f"{kind}_loss"], color=look, label=kind)
        log_axis(axis, "y", [*history["training_loss"], *history["validation_loss"]])
        axis.axvline(history["best_epoch"], color="0.5", linestyle="--", label="weights kept")
        axis.set(xlabel="epoch", ylabel="loss", title=name if len(histories) > 1 else "")
        axis.legend()
    return Drawing(figure, ChartTable.of(columns))
