"""The numbers behind the pictures of a run's report, as rows of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from twoscale.report.display import ABSENT, display
from twoscale.report.picture import ChartTable
from twoscale.report.run_samples import SPECTRA, RunSamples
from twoscale.report.run_trust import Proofs, Radii, TrustSamples
from twoscale.runtime.texts import short_number
from twoscale.search.findings import MEANINGS

_MOST_NODES = 4096  # of a map whose numbers a page holds
_MOST_EPOCHS = 500  # of a history; more are thinned


def sample_numbers(samples: RunSamples, channels: Sequence[str]) -> ChartTable:
    """Return the error of each sample and of its channels, in percent."""
    rows = [
        [str(number), _percent(error), *(map(_percent, own) if channels else ())]
        for number, error, own in zip(
            samples.numbers, samples.errors, samples.channel_errors, strict=True
        )
    ]
    return ChartTable(["sample", "error %", *(f"{name} %" for name in channels)], rows)


def share_numbers(shares: Mapping[str, float]) -> ChartTable:
    """Return the shares of the squared error and what they mean."""
    rows = [[name, _percent(share), MEANINGS[name]] for name, share in shares.items()]
    return ChartTable(["cause", "share %", "meaning"], rows)


def channel_numbers(channels: Mapping[str, Mapping[str, Any]]) -> ChartTable:
    """Return the errors of each channel in percent."""
    rows = [
        [name, *(_percent(values.get(key)) for key in ("mean_relative_l2", "mre", "oracle_mre"))]
        for name, values in channels.items()
    ]
    return ChartTable(["channel", "mean error %", "MRE %", "oracle MRE %"], rows)


def map_numbers(samples: RunSamples) -> ChartTable | None:
    """Return the mean of the map over channels, a row of nodes each; None if it is large."""
    values = np.sqrt(np.square(samples.error_map).mean(0))
    if values.size > _MOST_NODES:
        return None
    header = ["row", *(f"column {place}" for place in range(values.shape[1]))]
    rows = [[str(place), *map(_percent, row)] for place, row in enumerate(values)]
    return ChartTable(header, rows, note="Percent; root mean square of all channels.")


def spectrum_numbers(samples: RunSamples, names: Sequence[str]) -> ChartTable:
    """Return the mean energies at each wave number, channel by channel."""
    several = len(names) > 1
    header = ["wave number"]
    columns: list[np.ndarray] = []
    for place, name in enumerate(names):
        header += [f"{kind}, {name}" if several else kind for kind in SPECTRA]
        columns += [samples.spectra[kind][place] for kind in SPECTRA]
    rows = [
        [str(wave), *(f"{value:.4g}" for value in values)]
        for wave, values in enumerate(zip(*columns, strict=True))
    ]
    return ChartTable(header, rows)


def seam_numbers(jumps: Mapping[str, Mapping[str, float]]) -> ChartTable:
    """Return all jumps at patch borders and inside of patches."""
    names = list(jumps["seams"])
    places = [place for place in ("seams", "inside") if place in jumps]
    rows = [
        [display(name).words.replace(" at seams", ""), *(f"{jumps[at][name]:.4g}" for at in places)]
        for name in names
    ]
    labels = {"seams": "at borders", "inside": "inside"}
    return ChartTable(["quantity", *(labels[place] for place in places)], rows)


def reliability_numbers(radii: Radii) -> ChartTable:
    """Return the share of samples within their radius at each level, and what chance allows."""
    columns = (radii.levels, radii.covered, *radii.chance)
    rows = [list(map(_percent, row)) for row in zip(*columns, strict=True)]
    header = ["level %", "within %", "by chance from %", "to %"]
    return ChartTable(header, rows, note=f"Calibrated on {radii.calibrated} samples.")


def radius_numbers(numbers: np.ndarray, radii: Radii, outside: np.ndarray) -> ChartTable:
    """Return the error and the radius of each sample, and whether its input is outside."""
    rows = [
        [str(number), _percent(error), _percent(radius), "yes" if far else "no"]
        for number, error, radius, far in zip(
            numbers, radii.errors, radii.radii, outside, strict=False
        )
    ]
    note = "Relative to the size of the prediction."
    return ChartTable(["sample", "error %", "radius %", "input outside"], rows, note=note)


def proof_numbers(numbers: np.ndarray, proofs: Proofs) -> ChartTable:
    """Return the true error of samples in the energy norm, and its bounds."""
    columns = (proofs.lower, proofs.errors, proofs.upper)
    rows = [
        [str(number), *map(_percent, row)] for number, *row in zip(numbers, *columns, strict=False)
    ]
    return ChartTable(["sample", "lower bound %", "true error %", "upper bound %"], rows)


def distance_numbers(numbers: np.ndarray, trust: TrustSamples) -> ChartTable:
    """Return the distance of each input from the training inputs."""
    rows = [
        [str(number), f"{distance:.4g}"]
        for number, distance in zip(numbers, trust.distances, strict=True)
    ]
    return ChartTable(["sample", "distance"], rows, note="Above 1 the input is outside.")


def timing_numbers(timings: Mapping[str, float]) -> ChartTable:
    """Return the seconds of each stage."""
    rows = [[display(name).words, f"{seconds:.4g}"] for name, seconds in timings.items()]
    return ChartTable(["stage", "s"], rows)


def loss_numbers(histories: Mapping[str, Mapping[str, Any]]) -> ChartTable:
    """Return the losses of each epoch; of a long training, of about 500 epochs."""
    header = ["epoch"]
    columns: list[Sequence[float]] = []
    for name, history in histories.items():
        for kind in ("training_loss", "validation_loss"):
            header.append(f"{name}, {kind.replace('_', ' ')}")
            columns.append(history[kind])
    every = list(zip_longest(*columns))
    step = max(1, -(-len(every) // _MOST_EPOCHS))
    rows = [
        [str(epoch), *(ABSENT if one is None else f"{one:.5g}" for one in every[epoch])]
        for epoch in range(0, len(every), step)
    ]
    return ChartTable(header, rows)


def _percent(value: float | None) -> str:
    return ABSENT if value is None or not np.isfinite(value) else short_number(100 * value, 4)
