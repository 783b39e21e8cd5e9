"""Functions of predicted and true fields, each written once for losses and metrics alike.

A measure starts from `parts`: per channel two sums over a batch, which simply add up over batches.
`channels` turns the sums into a number per channel, and `finish` into one over all channels. As a
loss a measure is `finish(*parts(batch))`, differentiable; as a metric the parts are added over the
whole test set first. Fields are (batch, channels, *shape).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from twoscale.domain.patches import Seams
from twoscale.fields.source import Batch
from twoscale.math.spectra import radial_spectrum
from twoscale.math.ssim import structural_similarity
from twoscale.math.traces import TRACES, Trace

Parts = tuple[Tensor, Tensor]
Finish = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Compared:
    """What a measure may look at; `inputs` only where an equation is involved."""

    prediction: Tensor  # (batch, channels, *shape)
    truth: Tensor
    inputs: Tensor | None = None  # fields with channels and a grid of their own
    parameters: Tensor | None = None  # beside the input fields

    @property
    def error(self) -> Tensor:
        return self.prediction - self.truth

    @property
    def known_inputs(self) -> Tensor:
        assert self.inputs is not None
        return self.inputs

    @property
    def batch(self) -> Batch:
        """Return the inputs with their parameters."""
        return Batch.of(self.known_inputs, self.parameters)

    def in_unit(self, unit: Tensor) -> Compared:
        """Return the same with prediction and truth in units (channels, 1, ...); inputs stay."""
        unit = unit.to(self.truth)
        return replace(self, prediction=self.prediction / unit, truth=self.truth / unit)


@dataclass(frozen=True)
class Measure:
    """A number per channel made of two sums, and one over all channels."""

    parts: Callable[[Compared], Parts]  # each (channels,), or (channels, bins)
    channels: Finish  # to (channels,)
    finish: Finish  # to ()

    def __call__(self, batch: Compared) -> Tensor:
        """Return the measure of one batch over all channels, with gradient."""
        return self.finish(*self.parts(batch))


@dataclass(frozen=True)
class AffineMeasure(Measure):
    """A measure of values that are affine in the prediction: sum |value|^power over a weight.

    `fixed` says that the linear part is the same for every sample. Values have the channels of the
    fields, or else those of `equations`.
    """

    values: Callable[[Compared], Tensor]  # (batch, channels, n)
    weight: Callable[[Compared, Tensor], Tensor]  # (batch, channels), of the batch and its values
    power: int  # 1 or 2
    fixed: bool
    mean: bool  # the weight is the number of values
    equations: bool

    @property
    def on_codes(self) -> bool:
        """Say whether it can be evaluated on codes."""
        return self.fixed and (self.mean or self.power == 2)


def affine_measure(
    values: Callable[[Compared], Tensor],
    *,
    power: int,
    weight: Callable[[Compared, Tensor], Tensor] | None = None,
    fixed: bool = True,
    equations: bool = False,
) -> AffineMeasure:
    """Return the measure of values: a mean (power 1) or a root mean square, or with a `weight`."""
    weigh = weight or _count

    def parts(batch: Compared) -> Parts:
        found = values(batch)
        sizes = found.abs() if power == 1 else found.square()
        return _channel_sums(sizes), weigh(batch, found).sum(0)

    finish = (_ratios, _mean_ratio) if power == 1 else (_root_ratios, _root_mean_ratio)
    return AffineMeasure(parts, *finish, values, weigh, power, fixed, weight is None, equations)


def in_unit(measure: AffineMeasure, unit: Tensor) -> AffineMeasure:
    """Return a measure that takes each channel's values in its unit, so that squares stay finite.

    Units are (channels, 1, ...). A mean is then in those units as well; what is relative stays the
    same. Equations have no channel of the fields: all of them take the largest unit.
    """
    size = unit.flatten(1)  # (channels, 1)
    size = size.amax(0, keepdim=True) if measure.equations else size

    def weigh(batch: Compared, values: Tensor) -> Tensor:
        return measure.weight(batch.in_unit(unit), values)

    def values(batch: Compared) -> Tensor:
        found = measure.values(batch)
        return found / size.to(found)

    return affine_measure(
        values,
        power=measure.power,
        weight=None if measure.mean else weigh,
        fixed=measure.fixed,
        equations=measure.equations,
    )


def _count(batch: Compared, values: Tensor) -> Tensor:
    """Weigh each sample by its number of values: the measure is a mean."""
    return values.new_full(values.shape[:2], values.shape[2])


def measure_all(measures: dict[str, Measure], batches: Iterable[Compared]) -> dict[str, float]:
    """Return each measure over all batches and channels together."""
    return measure_channels(measures, batches)[0]


def measure_channels(
    measures: dict[str, Measure], batches: Iterable[Compared]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return each measure over all batches and channels, and over all batches for each channel.

    A measure of an equation has a number for each of its equations in place of channels.
    """
    totals = total_parts(
        {name: measure.parts(batch) for name, measure in measures.items()} for batch in batches
    )
    return (
        {name: float(measures[name].finish(*parts)) for name, parts in totals.items()},
        {name: measures[name].channels(*parts).tolist() for name, parts in totals.items()},
    )


def total_parts(batches: Iterable[dict[str, Parts]]) -> dict[str, Parts]:
    """Return the named pairs of sums, added up over batches in float64."""
    totals: dict[str, Parts] = {}
    for parts in batches:
        for name, (first, second) in parts.items():
            kept = totals.get(name, (0, 0))
            totals[name] = (first.double() + kept[0], second.double() + kept[1])
    return totals


# From sums to numbers. A channel whose truth is zero everywhere has no relative error: its number
# is not finite, and the number over all channels is that of the others.


def _ratios(numerator: Tensor, denominator: Tensor) -> Tensor:
    return numerator / denominator


def _mean_ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return (numerator / denominator).mean()


def _root_ratios(numerator: Tensor, denominator: Tensor) -> Tensor:
    return (numerator / denominator).sqrt()


def _root_mean_ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    divisor, count = divisors(denominator)
    return ((numerator / divisor).sum() / count).sqrt()


def divisors(sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return sizes (..., channels) with infinity for zero, and the number of the others (...).

    What is divided by infinity adds nothing to a sum, nor to its gradient.
    """
    known = sizes != 0
    return torch.where(known, sizes, torch.inf), known.sum(-1).to(sizes)


def _distances(prediction: Tensor, truth: Tensor) -> Tensor:
    return (prediction - truth).norm(dim=1) / truth.norm(dim=1)


def spectral_distance(prediction: Tensor, truth: Tensor) -> Tensor:
    """Return the relative L2 distance of spectra (channels, bins), root mean square of channels."""
    divisor, count = divisors(truth.norm(dim=1))
    distances = (prediction - truth).norm(dim=1) / divisor
    return distances.norm() / count.sqrt()  # a norm has a gradient at zero as well


def weighted_spectral_distance(prediction: Tensor, truth: Tensor) -> Tensor:
    """Return the relative distance of spectra weighted by 1 + k / k_max."""
    bins = truth.shape[1]
    weight = 1 + torch.linspace(0, 1, bins, dtype=truth.dtype, device=truth.device)
    return spectral_distance(weight * prediction, weight * truth)


def mean_of(function: Callable[[Compared], Tensor]) -> Measure:
    """Return the mean of a function's values (batch, channels, ...), channel by channel."""

    def parts(batch: Compared) -> Parts:
        values = function(batch)
        sums = _channel_sums(values)
        return sums, values.new_full(sums.shape, values.numel() // len(sums))

    return Measure(parts, _ratios, _mean_ratio)


def _channel_sums(values: Tensor) -> Tensor:
    """Return the sums (channels,) of values (batch, channels, ...), in float64 if untracked."""
    others = [axis for axis in range(values.ndim) if axis != 1]
    return values.sum(others, dtype=values.dtype if values.requires_grad else torch.float64)


# Accuracy

relative_l2 = affine_measure(
    lambda b: b.error.flatten(2), power=2, weight=lambda b, _: b.truth.square().flatten(2).sum(2)
)
"""||prediction - truth|| / ||truth||, one ratio over all samples: the MRE and the loss L_R.

Large fields count more. `mean_relative_l2` is the mean of the samples' own ratios.
"""

mean_squared_error = mean_of(lambda b: b.error.square())
mean_absolute_error = mean_of(lambda b: b.error.abs())

ssim = mean_of(lambda b: structural_similarity(b.prediction, b.truth))

spectral_error = Measure(
    lambda b: (radial_spectrum(b.prediction).sum(0), radial_spectrum(b.truth).sum(0)),
    _distances,
    spectral_distance,
)
"""Relative L2 distance of the two mean radial spectra."""

ACCURACY: dict[str, Measure] = {
    "mre": relative_l2,
    "mse": mean_squared_error,
    "mae": mean_absolute_error,
    "ssim": ssim,
    "spectral_error": spectral_error,
}


def unexplained_share(mean: Tensor) -> Measure:
    """Return ||prediction - truth||² / ||truth - mean||², one ratio over all samples: 1 - R².

    `mean` (channels, *shape) is the mean of the true fields. Over all channels it is the
    mean of their ratios.
    """

    def parts(batch: Compared) -> Parts:
        variation = (batch.truth - mean.to(batch.truth)).square()
        return _channel_sums(batch.error.square()), _channel_sums(variation)

    return Measure(parts, _ratios, _mean_known_ratio)


def _mean_known_ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    divisor, count = divisors(denominator)
    return (numerator / divisor).sum() / count


def sample_errors(prediction: Tensor, truth: Tensor, *, power: int = 2) -> Tensor:
    """Return the relative L2 error of each sample and channel, (batch, channels), in float64.

    With `power` 1 it is the relative L1 error: sum |prediction - truth| / sum |truth|. Where the
    true field is zero everywhere there is no relative error: it is NaN.
    """
    truth = truth.double()  # squares of single precision may be infinite
    sizes = truth.flatten(2).norm(power, dim=2)
    errors = (prediction - truth).flatten(2).norm(power, dim=2) / sizes
    return errors.masked_fill(sizes == 0, torch.nan)


def over_channels(errors: Tensor) -> Tensor:
    """Return errors (batch,) of whole samples: the root mean square of those of their channels.

    Channels without an error (NaN) do not count.
    """
    return errors.square().nanmean(dim=1).sqrt()


def mean_relative_l2(errors: Tensor) -> float:
    """Return the mean over samples of their errors (samples, channels), by `sample_errors`.

    Samples whose true field is zero everywhere have no relative error and do not count.
    """
    return float(over_channels(errors).nanmean())


def relative_errors(batches: Iterable[Compared]) -> dict[str, float]:
    """Return both relative L2 errors over all batches: `mre` and `mean_relative_l2`."""
    samples: list[Tensor] = []

    def collected() -> Iterator[Compared]:
        for batch in batches:
            samples.append(sample_errors(batch.prediction, batch.truth))
            yield batch

    pooled = measure_all({"mre": relative_l2}, collected())
    return pooled | {"mean_relative_l2": mean_relative_l2(torch.cat(samples))}


def median_sample(prediction: Tensor, truth: Tensor) -> int:
    """Return the sample whose relative error is closest to the median: neither best nor worst."""
    errors = over_channels(sample_errors(prediction, truth))
    return int((errors - errors.nanmedian()).abs().nan_to_num(torch.inf).argmin())


# Seams


def seam_measures(seams: Seams) -> dict[str, Measure]:
    """Return, for each trace T, `*_jump` = mean |T(u^)| and `*_trace_error` = mean |T(u^) - T(u)|.

    Traces are linear, so the error's trace is the difference of the traces.
    """
    measures: dict[str, Measure] = {}
    for name, trace in TRACES.items():
        measures[f"{name}_jump"] = mean_of(_jump(trace, seams))
        measures[f"{name}_trace_error"] = trace_error(trace, seams)
    return measures


def _jump(trace: Trace, seams: Seams) -> Callable[[Compared], Tensor]:
    return lambda batch: trace(batch.prediction, seams).abs()


def trace_error(trace: Trace, seams: Seams) -> AffineMeasure:
    """Return the mean |T(u^) - T(u)| of a linear trace T."""
    return affine_measure(lambda batch: trace(batch.error, seams), power=1)
