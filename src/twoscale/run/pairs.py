"""The pairs of fields that a run is fitted and tested on: in memory, or read on every pass."""

from __future__ import annotations

from collections.abc import Sequence

from twoscale.data import Dataset, Split
from twoscale.errors import TwoscaleError
from twoscale.fields.samples import Samples
from twoscale.fields.source import FieldSource
from twoscale.runtime.memory import available_memory, size_text
from twoscale.runtime.progress import Progress
from twoscale.surrogate import Surrogate

Pair = tuple[Samples, Samples]


def reads_on_each_pass(
    dataset: Dataset, memory: int | None, surrogates: Sequence[Surrogate] = ()
) -> bool:
    """Say whether fields are read on every pass: they would take more than half of the memory.

    `memory` is in bytes, by default the machine's free memory. If it is given, surrogates that
    train on whole fields are refused then.
    """
    stored = dataset.nbytes > (memory or available_memory()) // 2
    for surrogate in surrogates:
        if stored and memory and surrogate.parts.trains_on_fields:
            raise whole_fields_refused(dataset, surrogate.method)
    return stored


def split_pairs(
    dataset: Dataset, split: Split, *, stored: bool, progress: Progress | None = None
) -> list[Pair]:
    """Return the pairs of training, validation and test: in memory, or `stored` on disk."""
    parts = [split.training, split.validation, split.test]
    if stored:
        return [
            _pair(dataset, dataset.fields("input", part), dataset.fields("output", part))
            for part in parts
        ]
    sides = []
    for done, side in enumerate(("input", "output")):
        if progress:
            progress("loading", done, 2, f"{side} fields")
        sides.append(dataset.load_fields(side, parts))
    if progress:
        progress("loading", 2, 2, "")
    return [_pair(dataset, *sources) for sources in zip(*sides, strict=True)]


def loaded_pair(dataset: Dataset, samples: Sequence[int]) -> Pair:
    """Return the pairs of some samples, in memory."""
    inputs, outputs = (dataset.load_fields(side, [samples])[0] for side in ("input", "output"))
    return _pair(dataset, inputs, outputs)


def _pair(dataset: Dataset, inputs: FieldSource, outputs: FieldSource) -> Pair:
    input_rank, output_rank = dataset.ranks
    return (
        Samples(inputs, dataset.input_space, input_rank),
        Samples(outputs, dataset.output_space, output_rank),
    )


def whole_fields_refused(dataset: Dataset, method: str) -> TwoscaleError:
    """Return the error of a method that trains on whole fields, which are to stay on disk."""
    return TwoscaleError(
        f"{method} trains on whole fields with these settings, which need "
        f"{size_text(2 * dataset.nbytes)} here: give more (memory=...), or choose a PCA method "
        "with a predictor that reads codes"
    )
