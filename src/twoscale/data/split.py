"""Which samples train, which choose the weights, which calibrate, which judge."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.trust import set_apart

_EXAMPLE = "give training/validation/test as shares such as 0.8/0.1/0.1, or as numbers of samples"


@dataclass(frozen=True)
class Shares:
    """How many samples are for training, validation and test: shares of 1, or numbers.

    >>> Shares.parse("0.9/0.1/0").counts(50)
    (45, 5, 0)
    >>> Shares.parse("30/10/10").counts(200)
    (30, 10, 10)
    """

    training: Fraction
    validation: Fraction
    test: Fraction

    @classmethod
    def parse(cls, text: str) -> Shares:
        """Return the shares in a text such as 0.8/0.1/0.1 or 800/100/100; the last may be left out.

        Without the last one there are no test samples.
        """
        try:
            parts = [Fraction(part.strip()) for part in text.split("/")]
        except (ValueError, ZeroDivisionError):
            parts = []
        if len(parts) not in (2, 3) or min(parts) < 0:
            raise TwoscaleError(f"'{text}' is no split: {_EXAMPLE}")
        shares = cls(*parts, *[Fraction(0)] * (3 - len(parts)))
        if not shares.relative and any(part.denominator != 1 for part in parts):
            raise TwoscaleError(f"the shares of '{text}' sum to {float(sum(parts)):g}: {_EXAMPLE}")
        return shares

    @property
    def relative(self) -> bool:
        """Say whether these are shares of all samples; otherwise they are numbers."""
        return self.training + self.validation + self.test == 1

    def counts(self, samples: int) -> tuple[int, int, int]:
        """Return the numbers of training, validation and test samples.

        Shares are rounded down for validation and test, to one sample at least; the rest trains.
        """
        if self.relative:
            shares = (self.validation, self.test)
            apart = [max(1, int(share * samples)) if share else 0 for share in shares]
            return self._checked(samples, samples - sum(apart), *apart)
        counts = [int(part) for part in (self.training, self.validation, self.test)]
        if sum(counts) == 100 != samples:
            written = "/".join(f"{count / 100:g}" for count in counts)
            raise TwoscaleError(
                f"the split {self} may be percent or numbers of samples: write {written}, and "
                f"limit the training samples to {counts[0]} if you mean numbers"
            )
        if sum(counts) > samples:
            raise TwoscaleError(f"the split {self} asks for {sum(counts)} of {samples} samples")
        return self._checked(samples, *counts)

    def _checked(self, samples: int, *counts: int) -> tuple[int, int, int]:
        training, validation, test = counts
        if training < 2:
            left = f"leaves {max(training, 0)} for training: at least 2 are needed"
            raise TwoscaleError(f"the split {self} of {samples} samples {left}")
        return training, validation, test

    def __str__(self) -> str:
        return "/".join(f"{float(part):g}" for part in (self.training, self.validation, self.test))


USUAL = Shares.parse("0.8/0.1/0.1")
TESTED_ELSEWHERE = Shares.parse("0.9/0.1/0")
"""The usual split of a dataset whose surrogate is tested on another one."""


@dataclass(frozen=True)
class Split:
    """Sample indices of the parts, in the order of the shuffle.

    Calibration samples say how far predictions can be trusted. There may be none.
    """

    training: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    calibration: np.ndarray = field(default_factory=lambda: np.arange(0))

    def as_dict(self) -> dict[str, list[int]]:
        return {name: [int(i) for i in part] for name, part in vars(self).items()}

    @property
    def measured(self) -> str:
        """Return the part that the metrics are measured on: the last one that has samples.

        >>> Split(np.arange(8), np.arange(8, 10), np.arange(0)).measured
        'validation'
        """
        return next(name for name in ("test", "validation", "training") if len(vars(self)[name]))


def largest_training(samples: int) -> int:
    """Return how many of all samples train when nothing smaller is asked for: 80 %."""
    return samples - 2 * (samples // 10)


def split_samples(
    samples: int,
    *,
    seed: int,
    training: int | None = None,
    shares: Shares | str | None = None,
    chooses: bool = True,
    calibrates: bool = False,
) -> Split:
    """Return a shuffle of all samples cut into training, validation and test.

    Parameters
    ----------
    samples
        Number of all samples.
    seed
        Of the shuffle.
    training
        Asks for fewer training samples: a prefix of the full training part, so that smaller sets
        are nested in larger ones while validation and test stay the same.
    shares
        Of the three parts, 0.8/0.1/0.1 by default. Numbers may sum to less than all samples.
    chooses
        Whether the fit needs validation samples, to choose settings or weights. It then gets a
        tenth of the training samples, with a warning, if the shares leave it none.
    calibrates
        Whether half of the validation samples are set apart for calibration, if they are enough.
    """
    if shares is None and samples < 10:
        raise TwoscaleError(f"an 80/10/10 split needs at least 10 samples, got {samples}")
    asked = USUAL if shares is None else Shares.parse(shares) if isinstance(shares, str) else shares
    most, held, judging = asked.counts(samples)
    order = np.random.default_rng(seed).permutation(samples)
    first = samples - judging - held
    validation, test = order[first : samples - judging], order[samples - judging :]
    if not held and chooses:
        most, validation = _hold_out(order[:most])
    if training is not None and not 2 <= training <= most:
        raise TwoscaleError(f"of {samples} samples between 2 and {most} can train, got {training}")
    apart = set_apart(len(validation)) if calibrates else 0
    kept, calibration = np.split(validation, [len(validation) - apart])
    return Split(order[: training or most], kept, test, calibration)


def _hold_out(training: np.ndarray) -> tuple[int, np.ndarray]:
    """Return how many samples are left for training, and those that are held out of it."""
    count = max(1, len(training) // 10)
    left = len(training) - count
    if left < 2:
        samples = f"of {len(training)} training samples one must be held out for validation"
        raise TwoscaleError(f"{samples}: at least 3 are needed")
    chosen = f"{count} of the {len(training)} training samples are held out to choose settings or"
    text = f"{chosen} weights, because the split has no validation samples"
    warnings.warn(text, TwoscaleWarning, stacklevel=2)
    return left, training[left:]
