"""Hostile and plausibly wrong files: arrays, folders and texts that no honest program wrote."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.hostile import arrays, containers, datasets, runs, texts
from faults.trials import Trial


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield the trials of all groups of hostile files."""
    for module in (arrays, containers, datasets, runs, texts):
        yield from module.trials(choose)
