"""Which samples train, which choose the weights, which judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twoscale.errors import TwoscaleError


@dataclass(frozen=True)
class Split:
    """Sample indices of the three parts, in the order of the shuffle."""

    training: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def as_dict(self) -> dict[str, list[int]]:
        return {name: [int(i) for i in part] for name, part in vars(self).items()}


def largest_training(samples: int) -> int:
    """Return how many of all samples train when nothing smaller is asked for: 80 %."""
    return samples - 2 * (samples // 10)


def split_samples(samples: int, *, seed: int, training: int | None = None) -> Split:
    """Return a shuffle of all samples cut 80/10/10.

    `training` asks for fewer training samples: a prefix of the full training part, so that smaller
    sets are nested in larger ones while validation and test stay the same.
    """
    if samples < 10:
        raise TwoscaleError(f"an 80/10/10 split needs at least 10 samples, got {samples}")
    order = np.random.default_rng(seed).permutation(samples)
    most, held = largest_training(samples), samples // 10
    if training is not None and not 2 <= training <= most:
        raise TwoscaleError(f"of {samples} samples between 2 and {most} can train, got {training}")
    validation, test = order[most : most + held], order[most + held :]
    return Split(order[: training or most], validation, test)
