"""The errors of a run sample by sample: over the grid, over scales, at seams; a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.cuts import Axis
from twoscale.domain.patches import Seams
from twoscale.domain.space import Space
from twoscale.fields.pairs import Pairs
from twoscale.fields.source import Batch, chunk_length, slices
from twoscale.math.measures import (
    Compared,
    measure_all,
    over_channels,
    sample_errors,
    seam_measures,
)
from twoscale.math.spectra import radial_spectrum
from twoscale.report.run_trust import TrustSamples, measure_trust
from twoscale.surrogate import Surrogate

_MOST_SAMPLES = 200
_MOST_VALUES = 2**25  # of the fields that are held for the pictures: 128 MiB a side
_FAR = 3.0  # times the 90 % quantile: an outlier
_MOST_OUTLIERS = 0.05  # of the samples: more are no outliers

SPECTRA = ("truth", "prediction", "error")


@dataclass(frozen=True)
class SamplePrediction:
    """One sample with its prediction; arrays are (channels, height, width) in float64."""

    number: int  # of the sample in its dataset
    error: float
    inputs: np.ndarray | None  # fields only
    parameters: np.ndarray  # (P,)
    truth: np.ndarray
    prediction: np.ndarray


@dataclass(frozen=True)
class RunSamples:
    """What the predictions of some test samples tell.

    Parameters
    ----------
    numbers, tested
        The samples' numbers in their dataset, and how many test samples there are.
    errors, channel_errors
        The relative L2 error of each sample (n,), and of its channels (n, C).
    error_map
        The root mean square error over the samples at each node (C, height, width), relative to
        the root mean square of the channel's true values.
    spectra
        Mean radial energy (C, bins) of truth, prediction and error.
    seams
        Borders of the method's patches; None if it has none.
    jumps
        Measures of `seam_measures` at the `seams` and at all other lines of nodes, `inside`.
    best, median, worst
        Samples to look at; None if no sample has a finite error.
    trust
        How far the predictions could have been trusted; None if the surrogate does not know.
    """

    numbers: np.ndarray
    tested: int
    errors: np.ndarray
    channel_errors: np.ndarray
    error_map: np.ndarray
    spectra: dict[str, np.ndarray]
    seams: Seams | None = None
    jumps: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    best: SamplePrediction | None = None
    median: SamplePrediction | None = None
    worst: SamplePrediction | None = None
    trust: TrustSamples | None = None

    @property
    def finite(self) -> np.ndarray:
        """Return the errors that are finite; those relative to fields of zeros are not."""
        return self.errors[np.isfinite(self.errors)]

    @property
    def outliers(self) -> list[int]:
        """Return the numbers of samples with errors far above all others, the worst first."""
        if len(self.finite) < 1 / _MOST_OUTLIERS:
            return []
        far = self.errors > _FAR * np.quantile(self.finite, 0.9)
        if far.sum() > _MOST_OUTLIERS * len(self.errors):
            return []
        return [int(self.numbers[place]) for place in np.argsort(-self.errors) if far[place]]

    @property
    def seam_ratio(self) -> float | None:
        """Return the jumps of the error's slope at seams divided by those inside of patches."""
        at, inside = (
            self.jumps.get(place, {}).get("normal_derivative_trace_error")
            for place in ("seams", "inside")
        )
        return at / inside if at is not None and inside else None


def most_samples(*spaces: Space) -> int:
    """Return how many samples of some spaces are looked at, at most."""
    room = _MOST_VALUES // max(prod(space.shape) for space in spaces)
    return max(1, min(_MOST_SAMPLES, room))


class _Predicted:
    """Some samples with their predictions, as often as needed, a chunk at a time."""

    def __init__(self, surrogate: Surrogate, inputs: Batch, truth: Tensor) -> None:
        self.inputs, self.truth = inputs, truth
        self.parts = list(slices(len(truth), chunk_length(*truth.shape[1:])))
        self.predictions = [surrogate.predict_batch(inputs[part]) for part in self.parts]

    def __iter__(self) -> Iterator[Compared]:
        for part, prediction in zip(self.parts, self.predictions, strict=True):
            inputs = self.inputs[part]
            yield Compared(
                prediction.double(), self.truth[part].double(), inputs.fields, inputs.parameters
            )


def measure_samples(surrogate: Surrogate, test: Pairs, numbers: Sequence[int]) -> RunSamples:
    """Return what the first test samples tell, at most 200, fewer where fields are large.

    `numbers` are those of all test samples in their dataset, in the order of `test`.
    """
    most = most_samples(surrogate.input_space_, surrogate.output_space_)
    given, true = test.first(most).tensors()
    inputs, truth = given.to("cpu"), true.cpu()
    batches = _Predicted(surrogate, inputs, truth)
    channel_errors = torch.cat([sample_errors(one.prediction, one.truth) for one in batches])
    errors = over_channels(channel_errors).numpy()
    squares = _total(one.error.square().sum(0) for one in batches) / len(truth)
    sizes = _total(one.truth.square().sum((0, 2, 3)) for one in batches) / len(truth)
    size = (sizes / squares[0].numel()).sqrt()[:, None, None]
    spectra = {
        name: _total(radial_spectrum(getattr(one, name)).sum(0) for one in batches) / len(truth)
        for name in SPECTRA
    }
    layout = surrogate.operator_.layout
    seams = layout.seams if layout is not None and layout.seams else None
    lines = {} if seams is None else {"seams": seams, "inside": _inside(seams)}
    order = np.argsort(np.where(np.isfinite(errors), errors, np.inf), kind="stable")
    count = int(np.isfinite(errors).sum())
    chosen = [int(order[at]) for at in (0, (count - 1) // 2, count - 1)] if count else []
    looked_at = (
        predict_sample(surrogate, inputs[[place]], truth[[place]], numbers[place])
        for place in chosen
    )
    return RunSamples(
        np.asarray(numbers[: len(truth)]),
        len(numbers),
        errors,
        channel_errors.numpy(),
        (squares.sqrt() / torch.where(size > 0, size, 1.0)).numpy(),
        {name: energy.numpy() for name, energy in spectra.items()},
        seams,
        {k: measure_all(seam_measures(one), batches) for k, one in lines.items() if one},
        **dict(zip(("best", "median", "worst"), looked_at, strict=False)),
        trust=measure_trust(surrogate, batches),
    )


def _total(parts: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum(0)


def predict_sample(
    surrogate: Surrogate, inputs: Batch, truth: Tensor, number: int
) -> SamplePrediction:
    """Return one sample (1, channels, height, width) with its prediction."""
    prediction = surrogate.predict_batch(inputs)
    return SamplePrediction(
        number,
        float(over_channels(sample_errors(prediction, truth))[0]),
        inputs.fields[0].double().numpy() if surrogate.input_space_.channels else None,
        inputs.parameters[0].double().numpy(),
        truth[0].double().numpy(),
        prediction[0].double().numpy(),
    )


def _inside(seams: Seams) -> Seams:
    """Return all lines of nodes that are no seams, as seams."""

    def others(places: Sequence[int], axis: Axis) -> tuple[int, ...]:
        first = 0 if axis.periodic else 1
        return tuple(place for place in range(first, axis.size) if place not in places)

    lines = (
        others(places, axis) if axis.size > 1 else ()
        for places, axis in zip(seams.places, seams.axes, strict=True)
    )
    return Seams(tuple(lines), seams.axes)
