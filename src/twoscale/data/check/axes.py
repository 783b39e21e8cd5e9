"""Findings on the order of axes and on which of them wrap: by shapes and by differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from twoscale.data.axes import THIN
from twoscale.data.check.finding import Finding
from twoscale.data.check.statistics import Channel
from twoscale.data.reading import Reading
from twoscale.data.store import Dataset
from twoscale.fields.samples import rows_or_channels

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


def layout_findings(dataset: Dataset) -> Iterator[Finding]:
    """Yield a warning of each side whose axes look as if they were in another order.

    Nothing is said where a user has given the order.
    """
    if Reading.recorded_in(dataset.metadata).axes is not None:
        return
    for name, shape in dataset.layout.sample_shapes.items():
        if name == "parameters":
            continue
        hint = _channels_last((dataset.samples, *shape))
        if hint is not None:
            seen, _, advice = hint.partition(": ")
            yield Finding("warning", "channels_last", f"{name}: {seen}", advice)
        hint = rows_or_channels((dataset.samples, *shape), name)
        if hint is not None:
            seen, _, advice = hint.partition(": ")
            yield Finding("warning", "channels_as_rows", seen, advice)
    given, found = dataset.input_space.grid.shape, dataset.output_space.grid.shape
    if given == found[::-1] and given != found and 1 not in given:
        yield Finding(
            "warning",
            "transposed",
            f"inputs are on {given[0]}x{given[1]} nodes and outputs on {found[0]}x{found[1]}",
            "if one of them is transposed, swap its last two axes (numpy.swapaxes(fields, -1, -2)) "
            "and import again",
        )


def order_findings(channels: Sequence[Channel]) -> Iterator[Finding]:
    """Yield what the differences of neighbouring samples say about the first axis."""
    seen = [one for one in channels if one.side != "parameters" and one.count >= _FEW]
    seen = [one for one in seen if float(one.variance.mean()) > 0]
    close = [one for one in seen if one.restlessness < _SMOOTH]
    swapped = [one for one in seen if _columns_are_samples(one)]
    if swapped:
        yield Finding(
            "warning",
            "samples_last",
            f"{swapped[0].label}: neighbouring samples are nearly the same while neighbouring "
            "columns are as different as samples",
            "if the last axis is that of the samples, read the file with the axes hwn, or move the "
            "axis to the front (numpy.moveaxis(fields, -1, 0))",
        )
    elif close and len(close) == len(seen):
        yield Finding(
            "warning",
            "ordered_samples",
            "consecutive samples are nearly the same, like steps of a simulation",
            "a shuffle puts neighbours into training and test, and errors look too small; import "
            "some whole simulations as a dataset of their own, and test on that",
        )


def _columns_are_samples(channel: Channel) -> bool:
    """Say whether columns differ like samples do, while samples differ like rows do."""
    others = max(channel.restlessness, channel.roughness(0))
    last = channel.roughness(1)
    return others < _LIKELY and last > max(_ROUGH, _TIMES * others)


def transposition(dataset: Dataset, direct: float, transposed: float) -> Finding | None:
    """Return a warning if outputs go with the transposed inputs rather than with the inputs.

    `direct` and `transposed` are squared correlations of inputs and outputs at the same node, and
    at the transposed one, away from the diagonal.
    """
    if transposed < _TWICE * direct or transposed < max(_CORRELATED, 20 / dataset.samples):
        return None
    return Finding(
        "warning",
        "transposed",
        f"outputs correlate with the transposed inputs ({transposed:.2g}) far more than with the "
        f"inputs themselves ({direct:.2g})",
        "if one of them is transposed, swap its last two axes (numpy.swapaxes(fields, -1, -2)) and "
        "import again",
    )


def periodic_findings(
    channels: Sequence[Channel], declared: tuple[bool, bool]
) -> Iterator[Finding]:
    """Yield where the data contradict or suggest axes that wrap."""
    for axis in (0, 1):
        ratios = {
            one.label: ratio for one in channels if (ratio := _bend_ratio(one, axis)) is not None
        }
        doubled = [one.label for one in channels if _ends_are_equal(one, axis)]
        name, nodes = _NAMES[axis], "row" if axis == 0 else "column"
        if doubled:
            cut = "[..., :-1, :]" if axis == 0 else "[..., :-1]"
            yield Finding(
                "warning",
                "periodic_end",
                f"{doubled[0]}: the last {nodes} repeats the first one",
                f"drop it (fields{cut}) and import again with periodic {name}",
            )
        elif declared[axis] and (against := [k for k, v in ratios.items() if v > _OPEN]):
            yield Finding(
                "warning",
                "periodic",
                f"{against[0]}: {name} are declared periodic, but fields have a kink where the "
                f"last {nodes} meets the first",
                f"import again without periodic {name} if that is wrong",
            )
        elif not declared[axis] and ratios and all(v < _PERIODIC for v in ratios.values()):
            yield Finding(
                "note",
                "periodic",
                f"{', '.join(ratios)}: {name} look periodic, fields go on smoothly from the last "
                f"{nodes} to the first",
                f"if they are, import again with periodic {name}",
            )


def _bend_ratio(channel: Channel, axis: int) -> float | None:
    """Return squared bends across the ends beside those inside; None if fields are not smooth."""
    if channel.side == "parameters" or channel.shape[axis] < _NODES or channel.count < 2:
        return None
    sums = channel.axes[axis]
    if channel.roughness(axis) > _SMOOTH or not sums.bends:
        return None
    return sums.wrapped_bends / sums.bends


def _ends_are_equal(channel: Channel, axis: int) -> bool:
    """Say whether the last node of every line repeats the first, which is not constant itself."""
    if channel.side == "parameters" or channel.shape[axis] < _NODES or channel.count < 2:
        return False
    first = np.moveaxis(channel.variance, axis, 0)[0]
    lines = channel.count * channel.nodes / channel.shape[axis]
    equal = channel.axes[axis].ends / lines <= _EQUAL * channel.size
    varies = channel.roughness(axis) > _EQUAL
    return equal and varies and float(first.mean()) > 1e-3 * channel.size


def _channels_last(shape: Sequence[int]) -> str | None:
    """Return what to say of fields (samples, channels, height, width) that look channels-last."""
    if len(shape) != 4 or shape[3] > THIN or min(shape[1:3]) <= THIN:
        return None
    _, first, second, last = shape
    return (
        f"{first} channels on {second}x{last} nodes: if the last axis is that of the channels, "
        "import again with the axes nhwc"
    )
