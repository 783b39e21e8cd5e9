"""The pairs of fields that a run is fitted and tested on: in memory, or read on each pass."""

from __future__ import annotations

from torch import Tensor

from twoscale.data import Dataset, Split
from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource
from twoscale.runtime.memory import size_text
from twoscale.runtime.progress import Progress

Pair = tuple[Tensor | FieldSource, Tensor | FieldSource]


def loaded_pairs(dataset: Dataset, split: Split, progress: Progress | None) -> list[Pair]:
    """Return the pairs of fields of the three parts of a split."""
    parts = [split.training, split.validation, split.test]
    arrays = []
    for done, name in enumerate(("input", "output")):
        if progress:
            progress("loading", done, 2, f"{name} fields")
        arrays.append(dataset.load_parts(name, parts))
    if progress:
        progress("loading", 2, 2, "")
    return list(zip(*arrays, strict=True))


def stored_pairs(dataset: Dataset, split: Split) -> list[Pair]:
    """Return the same pairs as sources that read from disk on each pass."""
    parts = [split.training, split.validation, split.test]
    return [(dataset.fields("input", part), dataset.fields("output", part)) for part in parts]


def whole_fields_refused(dataset: Dataset, method: str) -> TwoscaleError:
    """Return the error of a method that trains on whole fields, which are to stay on disk."""
    return TwoscaleError(
        f"{method} trains on whole fields with these settings, which need "
        f"{size_text(2 * dataset.nbytes)} here: give more --memory, or choose a PCA method with a "
        "predictor that reads codes"
    )
