"""Findings on the order of axes and on which of them wrap: by shapes and by differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from twoscale.data.axes import THIN
from twoscale.data.check.channels import Channel
from twoscale.data.check.finding import Finding
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
_SWAP = (
    "if one of them is transposed, swap its last two axes (numpy.swapaxes(fields, -1, -2)) and "
    "import again"
)


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


def order_findings(channels: Sequence[Channel]) -> Iterator[Finding]:
    """Yield what the differences of neighbouring samples say about the first axis."""
    seen_channels = [
        one
        for one in channels
        if one.side != "parameters" and one.count >= _FEW and float(one.variance.mean()) > 0
    ]
    close = [one for one in seen_channels if one.restlessness < _SMOOTH]
    swapped = [one for one in seen_channels if _columns_are_samples(one)]
    if swapped:
        those = "neighbouring columns are as different as samples"
        seen = f"{swapped[0].label}: neighbouring samples are nearly the same while {those}"
        advice = (
            "if the last axis is that of the samples, read the file with the axes hwn, or move the "
            "axis to the front (numpy.moveaxis(fields, -1, 0))"
        )
        yield Finding("warning", "samples_last", seen, advice)
    elif close and len(close) == len(seen_channels):
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


class Transposition:
    """Sums of products of the first input and output channel, at the same node and transposed."""

    def __init__(self, dataset: Dataset) -> None:
        grids = {dataset.input_space.grid.shape, dataset.output_space.grid.shape}
        height, width = next(iter(grids))
        self.applies = len(grids) == 1 and height == width > 1
        self.samples = dataset.samples
        self.count = 0

    def see(self, inputs: np.ndarray, outputs: np.ndarray) -> None:
        if not self.applies:
            return
        x, u = (values[:, 0].astype(np.float64) for values in (inputs, outputs))
        if not (np.isfinite(x).all() and np.isfinite(u).all()):
            return
        if not self.count:
            self.origin = (x[0], u[0])
            self.sums = np.zeros((6, *x.shape[1:]))
        x, u = x - self.origin[0], u - self.origin[1]
        turned = x.transpose(0, 2, 1)
        parts = (x, u, x * x, u * u, x * u, turned * u)
        self.sums += np.stack([part.sum(axis=0) for part in parts])
        self.count += len(x)

    def correlations(self) -> tuple[float, float]:
        """Return squared correlations of inputs and outputs, at the same and transposed nodes.

        Only nodes away from the diagonal count: near it both are the same nodes.
        """
        if self.count < 2:
            return 0.0, 0.0
        x, u, xx, uu, xu, turned = self.sums / self.count
        size = float((xx - x * x).mean() * (uu - u * u).mean())
        if size <= 0:
            return 0.0, 0.0
        rows, columns = np.indices(x.shape)
        apart = abs(rows - columns) > len(x) // 3
        direct, other = (
            float(np.square(one[apart]).mean()) / size for one in (xu - x * u, turned - x.T * u)
        )
        return direct, other

    def findings(self) -> Iterator[Finding]:
        """Yield a warning if outputs go with the transposed inputs rather than with the inputs."""
        direct, other = self.correlations()
        if other >= _TWICE * direct and other >= max(_CORRELATED, 20 / self.samples):
            seen = (
                f"outputs correlate with the transposed inputs ({other:.2g}) far more than with "
                f"the inputs themselves ({direct:.2g})"
            )
            yield Finding("warning", "transposed", seen, _SWAP)


def periodic_findings(
    channels: Sequence[Channel], declared: tuple[bool, bool]
) -> Iterator[Finding]:
    """Yield where the data contradict or suggest axes that wrap."""
    for axis in (0, 1):
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
        elif declared[axis] and against:
            kink = f"fields have a kink where the last {nodes} meets the first"
            seen = f"{against[0]}: {name} are declared periodic, but {kink}"
            advice = f"import again without periodic {name} if that is wrong"
            yield Finding("warning", "periodic", seen, advice)
        elif not declared[axis] and ratios and max(ratios.values()) < _PERIODIC:
            smooth = f"fields go on smoothly from the last {nodes} to the first"
            seen = f"{', '.join(ratios)}: {name} look periodic, {smooth}"
            yield Finding(
                "note", "periodic", seen, f"if they are, import again with periodic {name}"
            )


def _can_wrap(channel: Channel, axis: int) -> bool:
    """Say whether there are enough nodes and samples to judge the ends of an axis."""
    return channel.side != "parameters" and channel.shape[axis] >= _NODES and channel.count > 1


def _bend_ratio(channel: Channel, axis: int) -> float | None:
    """Return squared bends across the ends beside those inside; None if fields are not smooth."""
    sums = channel.axes[axis]
    if not _can_wrap(channel, axis) or channel.roughness(axis) > _SMOOTH or not sums.bends:
        return None
    return sums.wrapped_bends / sums.bends


def _ends_are_equal(channel: Channel, axis: int) -> bool:
    """Say whether the last node of every line repeats the first, which is not constant itself."""
    if not _can_wrap(channel, axis):
        return False
    first = np.moveaxis(channel.variance, axis, 0)[0]
    equal = channel.axes[axis].ends / channel.lines(axis) <= _EQUAL * channel.size
    varies = channel.roughness(axis) > _EQUAL
    return equal and varies and float(first.mean()) > 1e-3 * channel.size
