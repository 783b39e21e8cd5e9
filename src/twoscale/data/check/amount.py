"""Findings on the number of samples: enough for the variety of the outputs?"""

from __future__ import annotations

import numpy as np

from twoscale.data.check.finding import Finding
from twoscale.data.split import largest_training

_SUBSET = 256  # samples that the variety is judged by
_VALUES = 2**23  # numbers of them that are kept at most
_SHARE = 0.99  # of the variance
_EACH = 3  # training samples for each number of a code, at least


class Variety:
    """Some outputs, evenly spread over the dataset, to see how many numbers describe them."""

    def __init__(self, samples: int, values: int) -> None:
        self.samples = samples
        kept = max(2, min(_SUBSET, _VALUES // values))
        self.stride = max(1, -(-samples // kept))
        self.rows: list[np.ndarray] = []

    def see(self, start: int, outputs: np.ndarray) -> None:
        """Take note of outputs (batch, channels, height, width)."""
        first = -start % self.stride
        self.rows += [row.astype(np.float64) for row in outputs[first :: self.stride]]

    @property
    def numbers(self) -> int:
        """Return how many PCA coordinates hold 99 % of the variance of the outputs seen.

        Each channel counts alike.
        """
        fields = np.stack([row for row in self.rows if np.isfinite(row).all()])
        apart = fields - fields.mean(axis=0)
        size = np.square(apart).mean(axis=(0, 2, 3), keepdims=True)
        flat = (apart / np.sqrt(np.where(size > 0, size, 1.0))).reshape(len(fields), -1)
        spectrum = np.linalg.eigvalsh(flat @ flat.T)[::-1].clip(0)
        if not spectrum.sum():
            return 0
        return int(np.searchsorted(np.cumsum(spectrum), _SHARE * spectrum.sum())) + 1

    def finding(self) -> Finding | None:
        if sum(np.isfinite(row).all() for row in self.rows) < 2:
            return None
        numbers, training = self.numbers, largest_training(self.samples)
        least = "at least " if numbers > len(self.rows) / 2 else ""
        message = (
            f"{least}{numbers} numbers hold 99 % of the outputs' variance, and {training} samples "
            "train"
        )
        if training >= _EACH * numbers:
            return Finding("ok", "samples", message)
        return Finding(
            "warning",
            "samples",
            message,
            f"fewer than {_EACH} samples for each number: expect the error to fall with more "
            "samples",
        )
