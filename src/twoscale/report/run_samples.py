"""The errors of a run sample by sample: over the grid, over scales, at seams; a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.cuts import Axis
from twoscale.domain.patches import Seams
from twoscale.domain.space import Space
from twoscale.fields.source import chunk_length, first_fields, slices
from twoscale.math.measures import (
    Batch,
    measure_all,
    over_channels,
    sample_errors,
    seam_measures,
)
from twoscale.math.spectra import radial_spectrum
from twoscale.report.run_trust import TrustLook, TrustSamples
from twoscale.run.pairs import Pair
from twoscale.surrogate import Surrogate

_MOST_SAMPLES = 200
_MOST_VALUES = 2**25  # of the fields that are held for the pictures: 128 MiB a side
_FAR = 3.0  # times the 90 % quantile: an outlier
_MOST_OUTLIERS = 0.05  # of the samples: more are no outliers

SPECTRA = ("truth", "prediction", "error")


@dataclass(frozen=True)
class Shown:
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
    jumps: dict[str, dict[str, float]] = field(default_factory=dict)
    best: Shown | None = None
    median: Shown | None = None
    worst: Shown | None = None
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
        order = np.argsort(-self.errors)
        return [int(self.numbers[place]) for place in order if far[place]]

    @property
    def seam_ratio(self) -> float | None:
        """Return the jumps of the error's slope at seams divided by those inside of patches."""
        at, inside = (
            self.jumps.get(place, {}).get("normal_derivative_trace_error")
            for place in ("seams", "inside")
        )
        return at / inside if at is not None and inside else None


def input_fields(space: Space, inputs: Tensor) -> Tensor | None:
    """Return the channels of inputs that are fields; None if all are parameters."""
    return inputs[:, : space.field_channels] if space.field_channels else None


def most_samples(*spaces: Space) -> int:
    """Return how many samples of some spaces are looked at, at most."""
    room = _MOST_VALUES // max(prod(space.shape) for space in spaces)
    return max(1, min(_MOST_SAMPLES, room))


def measure_samples(surrogate: Surrogate, test: Pair, numbers: Sequence[int]) -> RunSamples:
    """Return what the first test samples tell, at most 200, fewer where fields are large.

    `numbers` are those of all test samples in their dataset, in the order of `test`.
    """
    spaces = (surrogate.input_space_, surrogate.output_space_)
    most = most_samples(*spaces)
    inputs, truth = (first_fields(side.source, most).cpu() for side in test)
    sums = _Sums(spaces[1], _borders(surrogate))
    look = None if surrogate.trust_ is None else TrustLook(surrogate)
    for batch in _batches(surrogate, inputs, truth):
        sums.add(batch)
        if look is not None:
            look.add(batch)
    found = sums.result(np.asarray(numbers[: len(truth)]), tested=len(numbers))
    found = replace(found, trust=None if look is None else look.result())
    order = np.argsort(np.where(np.isfinite(found.errors), found.errors, np.inf), kind="stable")
    count = len(found.finite)
    if not count:
        return found

    places = (int(order[at]) for at in (0, (count - 1) // 2, count - 1))
    best, median, worst = (
        show_sample(surrogate, inputs[[place]], truth[[place]], int(found.numbers[place]))
        for place in places
    )
    return replace(found, best=best, median=median, worst=worst)


def show_sample(surrogate: Surrogate, inputs: Tensor, truth: Tensor, number: int) -> Shown:
    """Return one sample (1, channels, height, width) with its prediction."""
    space = surrogate.input_space_
    fields = input_fields(space, inputs)
    prediction = surrogate.predict_fields(inputs)
    return Shown(
        number,
        float(over_channels(sample_errors(prediction, truth))[0]),
        None if fields is None else fields[0].double().numpy(),
        inputs[0, space.field_channels :, 0, 0].double().numpy(),
        truth[0].double().numpy(),
        prediction[0].double().numpy(),
    )


def _batches(surrogate: Surrogate, inputs: Tensor, truth: Tensor) -> Iterator[Batch]:
    for part in slices(len(truth), chunk_length(*truth.shape[1:])):
        prediction = surrogate.predict_fields(inputs[part])
        yield Batch(prediction.double(), truth[part].double(), inputs[part])


def _borders(surrogate: Surrogate) -> Seams | None:
    """Return the borders of the method's own patches, if it has any."""
    layout = surrogate.operator_.layout
    return layout.seams if layout is not None and layout.seams else None


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


class _Sums:
    """Sums over the samples, added up chunk by chunk."""

    def __init__(self, space: Space, seams: Seams | None) -> None:
        self.seams = seams
        places = {} if seams is None else {"seams": seams, "inside": _inside(seams)}
        self.measures = {
            f"{place}.{name}": measure
            for place, lines in places.items()
            if lines
            for name, measure in seam_measures(lines).items()
        }
        self.jumps: list[tuple[int, dict[str, float]]] = []
        self.errors: list[Tensor] = []
        self.channel_errors: list[Tensor] = []
        self.squares = torch.zeros(space.shape, dtype=torch.float64)
        self.sizes = torch.zeros(space.channels, dtype=torch.float64)
        self.energies: dict[str, Tensor] = {}

    def add(self, batch: Batch) -> None:
        errors = sample_errors(batch.prediction, batch.truth)
        self.errors.append(over_channels(errors))
        self.channel_errors.append(errors)
        self.squares += batch.error.square().sum(0)
        self.sizes += batch.truth.square().sum((0, 2, 3))
        for name in SPECTRA:
            energy = radial_spectrum(getattr(batch, name)).sum(0)
            self.energies[name] = self.energies.get(name, torch.zeros(())) + energy
        if self.measures:
            self.jumps.append((len(errors), measure_all(self.measures, [batch])))

    def result(self, numbers: np.ndarray, *, tested: int) -> RunSamples:
        count = len(numbers)
        nodes = self.squares[0].numel()
        unit = (self.sizes / (count * nodes)).sqrt()[:, None, None]
        return RunSamples(
            numbers,
            tested,
            torch.cat(self.errors).numpy(),
            torch.cat(self.channel_errors).numpy(),
            ((self.squares / count).sqrt() / torch.where(unit > 0, unit, 1.0)).numpy(),
            {name: (energy / count).numpy() for name, energy in self.energies.items()},
            self.seams,
            self._mean_jumps(),
        )

    def _mean_jumps(self) -> dict[str, dict[str, float]]:
        """Return the mean jumps over all chunks, each weighted by its number of samples."""
        found: dict[str, dict[str, float]] = {}
        total = sum(count for count, _ in self.jumps)
        for count, values in self.jumps:
            for name, value in values.items():
                place, _, measure = name.partition(".")
                own = found.setdefault(place, {})
                own[measure] = own.get(measure, 0.0) + value * count / total
        return found
