"""Findings on the values of single channels: finite, constant, positive over many magnitudes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from twoscale.data.check.finding import Finding, some
from twoscale.data.check.statistics import Channel
from twoscale.runtime.precision import precision_problem

_SCALES_APART = 1e3  # ratio of two channels' largest values that is worth a word
_RANGE = 100  # ratio of largest and smallest value from which on a logarithm may help
_BULK = 10  # the same of the quantiles 5 % and 95 %
_SKEWED = 1.0  # skewness of values that a logarithm should at least halve
_TINY = 1e-6  # of the largest deviation: a node that deviates less is constant


def value_findings(channel: Channel) -> Iterator[Finding]:
    """Yield the findings on one channel alone."""
    yield finite(channel)
    for find in (constant_fields, precision, constant_nodes, logarithm):
        finding = find(channel)
        if finding is not None:
            yield finding


def finite(channel: Channel) -> Finding:
    if channel.bad:
        return Finding(
            "error",
            "values",
            f"{channel.label}: NaN or infinite values in {some(channel.bad, 'sample')}",
            "leave these samples out, or compute them again",
        )
    low, high = channel.low, channel.high
    return Finding(
        "ok", "values", f"{channel.label}: all values finite, from {low:.4g} to {high:.4g}"
    )


def constant_fields(channel: Channel) -> Finding | None:
    if not channel.constant or channel.low == channel.high:
        return None
    return Finding(
        "warning",
        "constant_fields",
        f"{channel.label}: constant fields in {some(channel.constant, 'sample')}",
        "find out whether these samples failed; leave them out if they did",
    )


def precision(channel: Channel) -> Finding | None:
    """Return a warning if the variation between samples is nearly lost in their mean."""
    if channel.count < 2:
        return None
    largest = float(np.abs(channel.mean).max())
    problem = precision_problem(largest, math.sqrt(float(channel.variance.mean())))
    if problem is None:
        return None
    what = "fields" if channel.nodes > 1 else "values"
    seen, _, advice = problem.partition(": ")
    return Finding("warning", "precision", f"{channel.label}: the {what} {seen}", advice)


def constant_nodes(channel: Channel) -> Finding | None:
    """Return a note on nodes inside that are the same in all samples while others are not."""
    if channel.count < 2 or min(channel.shape) < 3:
        return None
    never = never_changes(channel)
    inside = never[1:-1, 1:-1]
    if never.all() or not inside.any():
        return None
    share = 100 * inside.mean()
    return Finding(
        "note",
        "constant_nodes",
        f"{channel.label}: {int(inside.sum())} nodes inside ({share:.2g} %) are the same in all "
        "samples",
        "fine for a mask or an obstacle; otherwise look for a mistake in the data",
    )


def never_changes(channel: Channel) -> np.ndarray:
    """Return for each node (height, width) whether it is the same in all samples."""
    deviation = np.sqrt(channel.variance)
    return deviation <= _TINY * deviation.max()


def logarithm(channel: Channel) -> Finding | None:
    """Return a finding on a positive input over several magnitudes that its logarithm would tame.

    Values of only two levels, as in two materials, gain nothing from a logarithm.
    """
    if channel.side == "output" or not channel.count or channel.low <= 0:
        return None
    ratio = channel.high / channel.low
    if ratio < _RANGE:
        return None
    least, most = channel.quantiles(0.05, 0.95)
    values = np.concatenate(channel.values)
    skewed, tamed = skewness(values), skewness(np.log(values))
    if most < _BULK * least or skewed < _SKEWED or abs(tamed) > 0.5 * skewed:
        return None
    return Finding(
        "warning",
        "logarithm",
        f"{channel.label}: positive values over {math.log10(ratio):.1f} orders of magnitude, from "
        f"{channel.low:.2g} to {channel.high:.2g}",
        "fit with input_transform=log: the method then sees its logarithm",
    )


def skewness(values: np.ndarray) -> float:
    """Return the third standardised moment; 0 if all values are the same."""
    apart = values - values.mean()
    spread = float(np.sqrt(np.square(apart).mean()))
    return float((apart**3).mean()) / spread**3 if spread else 0.0


def scales(channels: Sequence[Channel]) -> Finding | None:
    """Return a note on channels of one side whose sizes are far apart."""
    sizes = np.array([max(abs(one.low), abs(one.high)) for one in channels])
    sound = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
    if len(sound) < 2:
        return None
    least, most = sound[sizes[sound].argmin()], sound[sizes[sound].argmax()]
    if sizes[most] <= _SCALES_APART * sizes[least]:
        return None
    return Finding(
        "note",
        "scales",
        f"{channels[least].label} has values up to {sizes[least]:.0e}, {channels[most].label} up "
        f"to {sizes[most]:.0e}",
        "nothing to do, each channel is scaled on its own",
    )


def boundary(outputs: Sequence[Channel], periodic: tuple[bool, bool]) -> Iterator[Finding]:
    """Yield what the outputs are at the boundary: zero, fixed or free."""
    for channel in outputs:
        edge = np.zeros(channel.shape, dtype=bool)
        if not periodic[0] and channel.shape[0] > 2:
            edge[[0, -1]] = True
        if not periodic[1] and channel.shape[1] > 2:
            edge[:, [0, -1]] = True
        if channel.count < 2 or not edge.any() or not channel.size:
            continue
        fixed = bool(never_changes(channel)[edge].all())
        zero = float(np.abs(channel.mean[edge]).max()) <= _TINY * math.sqrt(channel.size)
        kind = "zero" if fixed and zero else "the same in all samples" if fixed else "free"
        message = f"{channel.label}: values at the boundary are {kind}"
        advice = "" if kind == "free" else "nothing to do, PCA codes keep them exactly"
        yield Finding("ok" if kind == "free" else "note", "boundary", message, advice)
