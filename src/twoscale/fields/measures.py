"""Functions of predicted and true fields, each written once for losses and metrics alike.

A measure is a pair: `parts`, sums over a batch that simply add up over batches, and `finish`,
which turns the sums into the number. As a loss it is `finish(parts(batch))`, differentiable; as a
metric the parts are added over the whole test set first. Fields are (batch, height, width).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from twoscale.fields.grid import Grid
from twoscale.fields.patches import Seams
from twoscale.fields.ssim import structural_similarity

Parts = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Batch:
    """What a measure may look at; `inputs` only where an equation is involved."""

    prediction: Tensor
    truth: Tensor
    inputs: Tensor | None = None

    @property
    def error(self) -> Tensor:
        return self.prediction - self.truth

    @property
    def known_inputs(self) -> Tensor:
        assert self.inputs is not None
        return self.inputs

    def in_unit(self, unit: float) -> Batch:
        """Return the same with prediction and truth in a unit; inputs have another one."""
        return replace(self, prediction=self.prediction / unit, truth=self.truth / unit)


@dataclass(frozen=True)
class Measure:
    """A number made of two sums."""

    parts: Callable[[Batch], Parts]
    finish: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, batch: Batch) -> Tensor:
        """Return the measure of one batch, with gradient."""
        return self.finish(*self.parts(batch))


@dataclass(frozen=True)
class AffineMeasure(Measure):
    """A measure of values that are affine in the prediction: sum |value|^power over a weight.

    `fixed` says that the linear part is the same for every sample.
    """

    values: Callable[[Batch], Tensor]  # (batch, n)
    weight: Callable[[Batch, Tensor], Tensor]  # (batch,), of the batch and its values
    power: int  # 1 or 2
    fixed: bool
    mean: bool  # the weight is the number of values

    @property
    def on_codes(self) -> bool:
        """Say whether it can be evaluated on codes."""
        return self.fixed and (self.mean or self.power == 2)


def affine_measure(
    values: Callable[[Batch], Tensor],
    *,
    power: int,
    weight: Callable[[Batch, Tensor], Tensor] | None = None,
    fixed: bool = True,
) -> AffineMeasure:
    weigh = weight or _count

    def parts(batch: Batch) -> Parts:
        found = values(batch)
        sizes = found.abs() if power == 1 else found.square()
        return sizes.sum(dtype=_accumulator(found)), weigh(batch, found).sum()

    finish = _ratio if power == 1 else _root_ratio
    return AffineMeasure(parts, finish, values, weigh, power, fixed, mean=weight is None)


def in_unit(measure: AffineMeasure, unit: float) -> AffineMeasure:
    """Return a measure that takes all values in a unit of the fields, so that squares stay finite.

    A mean is then in that unit as well; what is relative stays the same.
    """

    def weigh(batch: Batch, values: Tensor) -> Tensor:
        return measure.weight(batch.in_unit(unit), values)

    return affine_measure(
        lambda batch: measure.values(batch) / unit,
        power=measure.power,
        weight=None if measure.mean else weigh,
        fixed=measure.fixed,
    )


def _count(batch: Batch, values: Tensor) -> Tensor:
    """Weigh each sample by its number of values: the measure is a mean."""
    return values.new_full((len(values),), values.shape[1])


def measure_all(measures: dict[str, Measure], batches: Iterable[Batch]) -> dict[str, float]:
    """Return each measure over all batches together."""
    totals = total_parts(
        {name: measure.parts(batch) for name, measure in measures.items()} for batch in batches
    )
    return {name: float(measures[name].finish(*parts)) for name, parts in totals.items()}


def total_parts(batches: Iterable[dict[str, Parts]]) -> dict[str, Parts]:
    """Return the named pairs of sums, added up over batches in float64."""
    totals: dict[str, Parts] = {}
    for parts in batches:
        for name, (first, second) in parts.items():
            kept = totals.get(name, (0, 0))
            totals[name] = (first.double() + kept[0], second.double() + kept[1])
    return totals


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return numerator / denominator


def _root_ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return (numerator / denominator).sqrt()


def _mean_parts(values: Tensor) -> Parts:
    return values.sum(dtype=_accumulator(values)), values.new_tensor(values.numel())


def _accumulator(values: Tensor) -> torch.dtype:
    return values.dtype if values.requires_grad else torch.float64


def mean_of(function: Callable[[Batch], Tensor]) -> Measure:
    return Measure(lambda batch: _mean_parts(function(batch)), _ratio)


# Accuracy

relative_l2 = affine_measure(
    lambda b: b.error.flatten(1), power=2, weight=lambda b, _: b.truth.square().sum((1, 2))
)
"""||prediction - truth|| / ||truth||, one ratio over everything: the MRE and the loss L_R."""

mean_squared_error = mean_of(lambda b: b.error.square())
mean_absolute_error = mean_of(lambda b: b.error.abs())


def median_sample(prediction: Tensor, truth: Tensor) -> int:
    """Return the sample whose relative error is closest to the median: neither best nor worst."""
    truth = truth.double()  # squares of single precision may be infinite
    errors = (prediction - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
    return int((errors - errors.median()).abs().argmin())


ssim = mean_of(lambda b: structural_similarity(b.prediction, b.truth))


# Spectra


@lru_cache(maxsize=8)
def _radial_bins(shape: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return, for the modes of a real FFT, bin round(|k|) and multiplicity, and the bins' sizes.

    A real field's modes come in conjugate pairs of equal energy, of which the real FFT holds one.
    """
    height, width = shape
    rows, columns = torch.fft.fftfreq(height, 1.0 / height), torch.fft.rfftfreq(width, 1.0 / width)
    bins = torch.hypot(rows[:, None], columns).round().long().flatten()
    single = (columns == 0) | (2 * columns == width)
    multiplicity = torch.where(single, 1.0, 2.0).expand(height, -1).flatten()
    counts = torch.bincount(bins, weights=multiplicity)
    return bins.to(device), multiplicity.to(device), counts.to(device)


def radial_spectrum(fields: Tensor) -> Tensor:
    """Return |FFT2|^2 averaged in integer radial bins, (batch, bins)."""
    bins, multiplicity, counts = _radial_bins(tuple(fields.shape[1:]), fields.device)
    energy = torch.view_as_real(torch.fft.rfft2(fields)).square().sum(-1).flatten(1)
    total = energy.new_zeros(len(fields), len(counts))
    total = total.index_add(1, bins, energy * multiplicity.to(energy.dtype))
    return total / counts.to(energy.dtype)


def _spectral_distance(prediction: Tensor, truth: Tensor) -> Tensor:
    return (prediction - truth).norm() / truth.norm()


def weighted_spectral_distance(prediction: Tensor, truth: Tensor) -> Tensor:
    """Return the relative L2 distance of two spectra (bins,), weighted by 1 + k / k_max."""
    weight = 1 + torch.linspace(0, 1, len(truth), dtype=truth.dtype, device=truth.device)
    return _spectral_distance(weight * prediction, weight * truth)


spectral_error = Measure(
    lambda b: (radial_spectrum(b.prediction).sum(0), radial_spectrum(b.truth).sum(0)),
    _spectral_distance,
)
"""Relative L2 distance of the two mean radial spectra."""


# Seams


def value_trace(fields: Tensor, seams: Seams) -> Tensor:
    """Return T_V = v[b] - v[b-1] across every seam b of both axes, one row per sample."""
    return _across(fields, seams, (-1, 0), lambda axis, before, at: at - before)


def normal_derivative_trace(fields: Tensor, seams: Seams) -> Tensor:
    """Return T_F = (v[b+1] - v[b]) / h - (v[b] - v[b-1]) / h across every seam of both axes."""
    spacing = Grid(*fields.shape[1:]).spacing

    def jump(axis: int, before: Tensor, at: Tensor, after: Tensor) -> Tensor:
        return ((after - at) - (at - before)) / spacing[axis - 1]

    return _across(fields, seams, (-1, 0, 1), jump)


def _across(
    fields: Tensor, seams: Seams, offsets: tuple[int, ...], function: Callable[..., Tensor]
) -> Tensor:
    """Apply `function(axis, *lines)` to the node lines beside each seam; flatten per sample.

    A seam so close to the border that a line would lie outside the grid is left out.
    """
    traces = [fields.new_empty(len(fields), 0)]
    for axis, places in zip((1, 2), seams, strict=True):
        inside = tuple(place for place in places if place + max(offsets) < fields.shape[axis])
        lines = [
            fields.index_select(axis, _positions(inside, offset, fields.device))
            for offset in offsets
        ]
        traces.append(function(axis, *lines).flatten(1))
    return torch.cat(traces, 1)


@lru_cache(maxsize=64)
def _positions(places: tuple[int, ...], offset: int, device: torch.device) -> Tensor:
    """Return line numbers on the device; kept, so that losses make no transfers."""
    return torch.tensor(places, dtype=torch.int64, device=device) + offset


Trace = Callable[[Tensor, Seams], Tensor]

TRACES: dict[str, Trace] = {
    "value": value_trace,
    "normal_derivative": normal_derivative_trace,
}


def seam_measures(seams: Seams) -> dict[str, Measure]:
    """Return, for each trace T, `*_jump` = mean |T(u^)| and `*_trace_error` = mean |T(u^) - T(u)|.

    Traces are linear, so the error's trace is the difference of the traces.
    """
    measures = {}
    for name, trace in TRACES.items():
        measures[f"{name}_jump"] = mean_of(_jump(trace, seams))
        measures[f"{name}_trace_error"] = trace_error(trace, seams)
    return measures


def _jump(trace: Trace, seams: Seams) -> Callable[[Batch], Tensor]:
    return lambda batch: trace(batch.prediction, seams).abs()


def trace_error(trace: Trace, seams: Seams) -> AffineMeasure:
    """Return the mean |T(u^) - T(u)| of a linear trace T."""
    return affine_measure(lambda batch: trace(batch.error, seams), power=1)


def flux_trace(fields: Tensor, coefficient: Tensor, seams: Seams) -> Tensor:
    """Return the jump of the flux a du/dn across every seam of both axes.

    (a[b+1/2] (v[b+1] - v[b]) - a[b-1/2] (v[b] - v[b-1])) / h, a at faces as the mean of two nodes.
    """
    spacing = Grid(*fields.shape[1:]).spacing

    def jump(axis: int, before: Tensor, at: Tensor, after: Tensor) -> Tensor:
        (u0, a0), (u1, a1), (u2, a2) = (line.unbind(-1) for line in (before, at, after))
        return 0.5 * ((a1 + a2) * (u2 - u1) - (a0 + a1) * (u1 - u0)) / spacing[axis - 1]

    return _across(torch.stack([fields, coefficient], -1), seams, (-1, 0, 1), jump)


ACCURACY: dict[str, Measure] = {
    "mre": relative_l2,
    "mse": mean_squared_error,
    "mae": mean_absolute_error,
    "ssim": ssim,
    "spectral_error": spectral_error,
}
