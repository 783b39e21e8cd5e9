"""Candidates that are tried, who fits them, what becomes of them, and their record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from twoscale.errors import TwoscaleError, UnreadableDataError
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.texts import duration_text, percent, short_number
from twoscale.search.advice import error_shares
from twoscale.search.space import Candidate, SearchSpace


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
    """A candidate that may be tried, is being fitted, or was fitted: why, when, and its outcome."""

    candidate: Candidate
    reason: str
    expected: float | None = None  # seconds, as estimated before; None for the first one
    seconds: float = 0.0
    outcome: Outcome | None = None
    failure: str | None = None
    share: float = 1.0  # of the squared error that it may remove
    began: float = 0.0
    deadline: float | None = None  # of its training

    @property
    def error(self) -> float:
        """Return the validation error, or infinity if the candidate could not be fitted."""
        return math.inf if self.outcome is None else self.outcome.error

    def ended(self, result: Outcome | TwoscaleError, now: float) -> Trial:
        """Return what became of a candidate that was fitted.

        The error of the first one is raised, and so is that of data that cannot be read.
        """
        done = replace(self, seconds=now - self.began)
        if isinstance(result, TwoscaleError):
            if self.expected is None or isinstance(result, UnreadableDataError):
                raise result
            return replace(done, failure=str(result))
        if not math.isfinite(result.error):
            return replace(done, failure="its predictions are not finite")
        candidate = self.candidate
        if result.epochs is not None:  # perhaps fewer than were asked for
            candidate = replace(candidate, epochs=math.ceil(result.epochs))
        return replace(done, candidate=candidate, outcome=result)

    def log(self) -> None:
        """Tell the log of a candidate that was tried."""
        result = f"failed: {self.failure}"
        if self.outcome is not None:
            result = f"mean validation error {percent(self.error)}"
        label, seconds = self.candidate.label, duration_text(self.seconds)
        LOGGER.info("tried %s (%s) in %s: %s", label, self.reason, seconds, result)


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


HEADINGS = ("candidate", "why", "input", "codes", "oracle", "learned", "s")

MEASURE = "mean_relative_l2"
"""The metric that a search chooses by; its errors are of this kind."""

CAPTION = "Mean relative L2 errors of the validation fields in %"
"""What the errors under `HEADINGS` are."""


def as_record(found: Search, space: SearchSpace) -> dict[str, Any]:
    """Return all trials of a search and its choice, for JSON."""
    best = found.best
    return {
        "measure": MEASURE,
        "budget": found.budget,
        "seconds": found.seconds,
        "stopped": found.stopped,
        "half_error": found.half_error,
        "declared_symmetries": space.declared,
        "refused_symmetries": space.refused,
        "chosen": found.trials.index(best) if best else None,
        "trials": [_trial(trial, space) for trial in found.trials],
    }


def _trial(trial: Trial, space: SearchSpace) -> dict[str, Any]:
    outcome: dict[str, Any] = {}
    if trial.outcome is not None:
        outcome = asdict(trial.outcome) | {"shares": trial.outcome.shares}
        del outcome["tuned"]
    return {
        "label": trial.candidate.label,
        "method": trial.candidate.chain,
        "settings": space.settings(trial.candidate),
        "why": trial.reason,
        "expected_seconds": trial.expected,
        "seconds": trial.seconds,
        **outcome,
        "failure": trial.failure,
    }


def table_rows(record: Mapping[str, Any]) -> list[list[str]]:
    """Return a stored search as rows under `HEADINGS`; the chosen one is marked."""
    return [
        _row(trial, chosen=place == record["chosen"])
        for place, trial in enumerate(record["trials"])
    ]


def _row(trial: Mapping[str, Any], *, chosen: bool) -> list[str]:
    label = f"{'*' if chosen else ' '} {trial['label']}"
    seconds = f"{trial['seconds']:.1f}"
    if trial["failure"] is not None:
        return [label, trial["why"], "", "", "", "failed", seconds]
    return [
        label,
        trial["why"],
        str(trial["settings"].get("input_variance", "all")),
        f"{trial['input_code']}→{trial['output_code']}",
        *(short_number(100 * trial[name]) for name in ("oracle", "error")),
        seconds,
    ]
