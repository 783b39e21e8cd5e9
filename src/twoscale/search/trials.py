"""Results of candidates that were tried, and the search they belong to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from twoscale.search.candidates import Candidate
from twoscale.search.findings import error_shares


@dataclass(frozen=True)
class Outcome:
    """Results of a fitted candidate; errors are means of the fields' relative L2 errors."""

    error: float  # of predictions on the validation fields
    training_error: float  # the same on training fields
    oracle: float  # of the nearest fields that the code can express, for the validation fields
    input_code: int
    output_code: int
    tuned: tuple[tuple[str, Any], ...] = ()  # settings that the predictor chose
    mre: float | None = None  # `error` as one ratio over all validation fields
    epoch_seconds: float | None = None  # if the predictor is probed
    epochs: float | None = None  # that were run: of a probed predictor, or before a deadline
    measuring: float = 0.0  # seconds that the errors took, after the fit

    @property
    def shares(self) -> dict[str, float]:
        """Return the shares of the squared error by their cause; they add up to one."""
        return error_shares(self.error, self.training_error, self.oracle)


@dataclass(frozen=True)
class Trial:
    """A candidate that was tried: why, how long it took, and its outcome."""

    candidate: Candidate
    reason: str
    expected: float | None  # seconds, as estimated before
    seconds: float
    outcome: Outcome | None
    failure: str | None = None

    @property
    def error(self) -> float:
        """Return the validation error, or infinity if the candidate could not be fitted."""
        return math.inf if self.outcome is None else self.outcome.error


@dataclass
class Search:
    """A search, from its first trial to its end."""

    budget: float
    trials: list[Trial] = field(default_factory=list)
    half_error: float | None = None  # of the best candidate, learned from half of the samples
    stopped: str = ""
    seconds: float = 0.0

    @property
    def best(self) -> Trial | None:
        """Return the trial of the least validation error; of equal ones, the first."""
        fitted = [trial for trial in self.trials if trial.outcome is not None]
        return min(fitted, key=lambda trial: trial.error, default=None)

    @property
    def lengths(self) -> dict[tuple[str, int], int]:
        """Return the lengths of the codes that were fitted, by chain and place in `CODES`."""
        return {
            (one.candidate.chain, one.candidate.code): one.outcome.output_code
            for one in self.trials
            if one.outcome is not None and one.candidate.size is None
        }
