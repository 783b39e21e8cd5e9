"""The numbers behind the pictures of a run's report, as rows of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from twoscale.report.display import ABSENT, display
from twoscale.report.picture import Numbers
from twoscale.report.run_samples import SPECTRA, RunSamples
from twoscale.runtime.texts import short_number
from twoscale.search.findings import MEANINGS

_MOST_NODES = 4096  # of a map whose numbers a page holds
_MOST_EPOCHS = 500  # of a history; more are thinned


def sample_numbers(samples: RunSamples, channels: Sequence[str]) -> Numbers:
    """Return the error of each sample and of its channels, in percent."""
    rows = [
        [str(number), _percent(error), *(map(_percent, own) if channels else ())]
        for number, error, own in zip(
            samples.numbers, samples.errors, samples.channel_errors, strict=True
        )
    ]
    return Numbers(["sample", "error %", *(f"{name} %" for name in channels)], rows)


def share_numbers(shares: Mapping[str, float]) -> Numbers:
    """Return the shares of the squared error and what they mean."""
    rows = [[name, _percent(share), MEANINGS[name]] for name, share in shares.items()]
    return Numbers(["cause", "share %", "meaning"], rows)


def channel_numbers(channels: Mapping[str, Mapping[str, Any]]) -> Numbers:
    """Return the errors of each channel in percent."""
    rows = [
        [name, *(_percent(values.get(key)) for key in ("mean_relative_l2", "mre", "oracle_mre"))]
        for name, values in channels.items()
    ]
    return Numbers(["channel", "mean error %", "MRE %", "oracle MRE %"], rows)


def map_numbers(samples: RunSamples) -> Numbers | None:
    """Return the mean of the map over channels, a row of nodes each; None if it is large."""
    values = np.sqrt(np.square(samples.error_map).mean(0))
    if values.size > _MOST_NODES:
        return None
    header = ["row", *(f"column {place}" for place in range(values.shape[1]))]
    rows = [[str(place), *map(_percent, row)] for place, row in enumerate(values)]
    return Numbers(header, rows, note="Percent; root mean square of all channels.")


def spectrum_numbers(samples: RunSamples, names: Sequence[str]) -> Numbers:
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
    return Numbers(header, rows)


def seam_numbers(jumps: Mapping[str, Mapping[str, float]]) -> Numbers:
    """Return all jumps at patch borders and inside of patches."""
    names = list(jumps["seams"])
    places = [place for place in ("seams", "inside") if place in jumps]
    rows = [
        [display(name).words.replace(" at seams", ""), *(f"{jumps[at][name]:.4g}" for at in places)]
        for name in names
    ]
    labels = {"seams": "at borders", "inside": "inside"}
    return Numbers(["quantity", *(labels[place] for place in places)], rows)


def timing_numbers(timings: Mapping[str, float]) -> Numbers:
    """Return the seconds of each stage."""
    rows = [[display(name).words, f"{seconds:.4g}"] for name, seconds in timings.items()]
    return Numbers(["stage", "s"], rows)


def loss_numbers(histories: Mapping[str, Mapping[str, Any]]) -> Numbers:
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
    return Numbers(header, rows)


def _percent(value: float | None) -> str:
    return ABSENT if value is None or not np.isfinite(value) else short_number(100 * value, 4)
