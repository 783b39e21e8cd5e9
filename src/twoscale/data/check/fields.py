"""Checks of the fields: their values, the order of their axes, and which axes wrap."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from twoscale.data.axes import THIN
from twoscale.data.check.finding import Finding, some
from twoscale.data.check.statistics import TINY, Channel, DatasetStatistics
from twoscale.data.reading import Reading
from twoscale.data.store import Dataset
from twoscale.fields.samples import rows_or_channels
from twoscale.runtime.precision import precision_problem

_SCALES_APART = 1e3  # ratio of two channels' largest values that is worth a word
_RANGE = 100  # ratio of largest and smallest value from which on a logarithm may help
_BULK = 10  # the same of the quantiles 5 % and 95 %
_SKEWED = 1.0  # skewness of values that a logarithm should at least halve

_SMOOTH = 0.1  # roughness below which neighbours along an axis clearly belong together
_LIKELY = 0.35  # roughness below which they probably do
_ROUGH = 0.5  # roughness above which they are as good as independent
_TIMES = 3  # as rough as the other axes: an axis that is not like them
_TWICE, _CORRELATED = 2.0, 0.1  # squared correlations: one beside the other, and alone
_FEW = 10  # samples that say nothing about their order
_NODES = 6  # of an axis whose ends can be judged
_PERIODIC, _OPEN = 4.0, 25.0  # bends across the ends beside those inside, squared
_EQUAL = 1e-8  # squared difference of both ends beside the fields' variance
_NAMES = ("rows", "columns")
_SWAP = (
    "if one of them is transposed, swap its last two axes (numpy.swapaxes(fields, -1, -2)) and "
    "import again"
)


def finite_values(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield of each channel the samples with values that are not finite, or its range."""
    for channel in statistics.every:
        if channel.bad:
            seen = f"{channel.label}: NaN or infinite values in {some(channel.bad, 'sample')}"
            advice = "leave these samples out, or compute them again"
            yield Finding("error", "values", seen, advice)
        elif channel.count:
            low, high = channel.low, channel.high
            seen = f"{channel.label}: all values finite, from {low:.4g} to {high:.4g}"
            yield Finding("ok", "values", seen)


def constant_fields(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield the samples whose field is constant, in channels that are not."""
    for channel in statistics.seen:
        if channel.constant and channel.low != channel.high:
            seen = f"{channel.label}: constant fields in {some(channel.constant, 'sample')}"
            advice = "find out whether these samples failed; leave them out if they did"
            yield Finding("warning", "constant_fields", seen, advice)


def lost_digits(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield a warning of channels whose variation between samples is nearly lost in their mean."""
    for channel in statistics.varied:
        largest = float(np.abs(channel.mean).max())
        problem = precision_problem(largest, math.sqrt(float(channel.variance.mean())))
        if problem is not None:
            what = "fields" if channel.nodes > 1 else "values"
            lost, advice = problem
            yield Finding("warning", "precision", f"{channel.label}: the {what} {lost}", advice)


def constant_nodes(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield a note on nodes inside that are the same in all samples while others are not."""
    for channel in statistics.varied:
        never = channel.never_changes
        inside = never[1:-1, 1:-1]
        if not never.all() and inside.any():
            share = f"{int(inside.sum())} nodes inside ({100 * inside.mean():.2g} %)"
            seen = f"{channel.label}: {share} are the same in all samples"
            advice = "fine for a mask or an obstacle; otherwise look for a mistake in the data"
            yield Finding("note", "constant_nodes", seen, advice)


def logarithm(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield positive inputs over several magnitudes that a logarithm would tame.

    Values of only two levels, as in two materials, gain nothing from a logarithm.
    """
    for channel in statistics.seen:
        if channel.side == "output" or channel.low <= 0:
            continue
        ratio = channel.high / channel.low
        values = np.concatenate(channel.values)  # some of them
        least, most = np.quantile(values, (0.05, 0.95))
        skewed, tamed = _skewness(values), _skewness(np.log(values))
        skews = skewed >= _SKEWED and abs(tamed) <= 0.5 * skewed
        if ratio >= _RANGE and most >= _BULK * least and skews:
            orders = f"{math.log10(ratio):.1f} orders of magnitude"
            span = f"from {channel.low:.2g} to {channel.high:.2g}"
            seen = f"{channel.label}: positive values over {orders}, {span}"
            advice = "fit with input_transform=log: the method then sees its logarithm"
            yield Finding("warning", "logarithm", seen, advice)


def _skewness(values: np.ndarray) -> float:
    """Return the third standardised moment; 0 if all values are the same."""
    apart = values - values.mean()
    spread = float(np.sqrt(np.square(apart).mean()))
    return float((apart**3).mean()) / spread**3 if spread else 0.0


def scales(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield a note on channels of one array whose sizes are far apart."""
    for channels in statistics.channels.values():
        sizes = np.array([max(abs(one.low), abs(one.high)) for one in channels])
        sound = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
        if not len(sound):
            continue
        least, most = sound[sizes[sound].argmin()], sound[sizes[sound].argmax()]
        if sizes[most] > _SCALES_APART * sizes[least]:
            low, high = (f"up to {sizes[one]:.0e}" for one in (least, most))
            seen = f"{channels[least].label} has values {low}, {channels[most].label} {high}"
            yield Finding(
                "note", "scales", seen, "nothing to do, each channel is scaled on its own"
            )


def boundary(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield what the outputs are at the boundary: zero, fixed or free."""
    rows, columns = statistics.periodic
    for channel in statistics.channels["output"]:
        edge = np.zeros(channel.shape, dtype=bool)
        if not rows and channel.shape[0] > 2:
            edge[[0, -1]] = True
        if not columns and channel.shape[1] > 2:
            edge[:, [0, -1]] = True
        if channel.count < 2 or not edge.any() or not channel.size:
            continue
        fixed = bool(channel.never_changes[edge].all())
        zero = float(np.abs(channel.mean[edge]).max()) <= TINY * math.sqrt(channel.size)
        kind = "zero" if fixed and zero else "the same in all samples" if fixed else "free"
        level = "ok" if kind == "free" else "note"
        advice = "" if kind == "free" else "nothing to do, PCA codes keep them exactly"
        seen = f"{channel.label}: values at the boundary are {kind}"
        yield Finding(level, "boundary", seen, advice)


def layout_findings(dataset: Dataset) -> Iterator[Finding]:
    """Yield a warning of each side whose axes look as if they were in another order.

    Nothing is said where a user has given the order.
    """
    if Reading.recorded_in(dataset.metadata).axes is not None:
        return
    for name, shape in dataset.layout.sample_shapes.items():
        if name == "parameters":
            continue
        if len(shape) == 3 and shape[2] <= THIN < min(shape[:2]):
            seen = f"{name}: {shape[0]} channels on {shape[1]}x{shape[2]} nodes"
            advice = "if the last axis is that of the channels, import again with the axes nhwc"
            yield Finding("warning", "channels_last", seen, advice)
        hint = rows_or_channels((dataset.samples, *shape), name)
        if hint is not None:
            yield Finding("warning", "channels_as_rows", *hint)
    inputs, outputs = (space.grid.shape for space in (dataset.input_space, dataset.output_space))
    if inputs == outputs[::-1] != outputs and 1 not in inputs:
        sides = ["x".join(map(str, shape)) for shape in (inputs, outputs)]
        seen = f"inputs are on {sides[0]} nodes and outputs on {sides[1]}"
        yield Finding("warning", "transposed", seen, _SWAP)


def sample_order(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield what the differences of neighbouring samples say about the first axis."""
    channels = [
        one for one in statistics.fields if one.count >= _FEW and float(one.variance.mean()) > 0
    ]
    close = [one for one in channels if one.restlessness < _SMOOTH]
    swapped = [one for one in channels if _columns_are_samples(one)]
    if swapped:
        those = "neighbouring columns are as different as samples"
        seen = f"{swapped[0].label}: neighbouring samples are nearly the same while {those}"
        advice = (
            "if the last axis is that of the samples, read the file with the axes hwn, or move the "
            "axis to the front (numpy.moveaxis(fields, -1, 0))"
        )
        yield Finding("warning", "samples_last", seen, advice)
    elif close and len(close) == len(channels):
        seen = "consecutive samples are nearly the same, like steps of a simulation"
        advice = (
            "a shuffle puts neighbours into training and test, and errors look too small; import "
            "some whole simulations as a dataset of their own, and test on that"
        )
        yield Finding("warning", "ordered_samples", seen, advice)


def _columns_are_samples(channel: Channel) -> bool:
    """Say whether columns differ like samples do, while samples differ like rows do."""
    others = max(channel.restlessness, channel.roughness(0))
    last = channel.roughness(1)
    return others < _LIKELY and last > max(_ROUGH, _TIMES * others)


def transposed(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield a warning if outputs go with the transposed inputs rather than with the inputs."""
    direct, other = statistics.transposition.correlations()
    if other >= _TWICE * direct and other >= max(_CORRELATED, 20 / statistics.dataset.samples):
        seen = (
            f"outputs correlate with the transposed inputs ({other:.2g}) far more than with the "
            f"inputs themselves ({direct:.2g})"
        )
        yield Finding("warning", "transposed", seen, _SWAP)


def periodic_axes(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield where the data contradict or suggest axes that wrap."""
    for axis, declared in enumerate(statistics.periodic):
        channels = [one for one in statistics.fields if _can_wrap(one, axis)]
        ratios = {
            one.label: ratio for one in channels if (ratio := _bend_ratio(one, axis)) is not None
        }
        doubled = [one.label for one in channels if _ends_are_equal(one, axis)]
        against = [label for label, ratio in ratios.items() if ratio > _OPEN]
        name, nodes = _NAMES[axis], "row" if axis == 0 else "column"
        if doubled:
            cut = "[..., :-1, :]" if axis == 0 else "[..., :-1]"
            seen = f"{doubled[0]}: the last {nodes} repeats the first one"
            advice = f"drop it (fields{cut}) and import again with periodic {name}"
            yield Finding("warning", "periodic_end", seen, advice)
        elif declared and against:
            kink = f"fields have a kink where the last {nodes} meets the first"
            seen = f"{against[0]}: {name} are declared periodic, but {kink}"
            advice = f"import again without periodic {name} if that is wrong"
            yield Finding("warning", "periodic", seen, advice)
        elif not declared and ratios and max(ratios.values()) < _PERIODIC:
            smooth = f"fields go on smoothly from the last {nodes} to the first"
            seen = f"{', '.join(ratios)}: {name} look periodic, {smooth}"
            yield Finding(
                "note", "periodic", seen, f"if they are, import again with periodic {name}"
            )


def _can_wrap(channel: Channel, axis: int) -> bool:
    """Say whether there are enough nodes and samples to judge the ends of an axis."""
    return channel.shape[axis] >= _NODES and channel.count > 1


def _bend_ratio(channel: Channel, axis: int) -> float | None:
    """Return squared bends across the ends beside those inside; None if fields are not smooth."""
    sums = channel.axes[axis]
    if channel.roughness(axis) > _SMOOTH or not sums.bends:
        return None
    return sums.wrapped_bends / sums.bends


def _ends_are_equal(channel: Channel, axis: int) -> bool:
    """Say whether the last node of every line repeats the first, which is not constant itself."""
    first = np.moveaxis(channel.variance, axis, 0)[0]
    equal = channel.axes[axis].ends / channel.lines(axis) <= _EQUAL * channel.size
    varies = channel.roughness(axis) > _EQUAL
    return equal and varies and float(first.mean()) > 1e-3 * channel.size
