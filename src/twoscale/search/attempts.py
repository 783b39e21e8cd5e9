"""Candidates that are being fitted, who fits them, and what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from twoscale.errors import TwoscaleError, UnreadableDataError
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.texts import duration_text, percent
from twoscale.search.candidates import Candidate
from twoscale.search.neighbours import Step
from twoscale.search.trials import Outcome, Trial


@dataclass(frozen=True)
class RunningCandidate:
    """A candidate that is being fitted: how long it should take, its start, its deadline."""

    step: Step
    expected: float | None
    began: float
    deadline: float | None = None  # of its training


class Fitter(Protocol):
    """What fits candidates, and keeps the best one."""

    validation_samples: int

    @property
    def reserve(self) -> float:
        """Return the seconds that are needed after the search."""
        ...

    def fit(self, candidate: Candidate, deadline: float | None = None) -> Outcome:
        """Fit a candidate and measure it; a TwoscaleError means that it cannot be fitted.

        Its training ends by the deadline, a time of the search's clock.
        """
        ...

    def half_error(self, candidate: Candidate, deadline: float | None = None) -> float:
        """Return the validation error of a candidate that learns from half of the samples."""
        ...

    def attempts(self, following: Following) -> Iterator[Attempt]:
        """Fit the candidates that `following` gives; yield each with its outcome or its error.

        Several may be fitted at a time. The end is when none is, and None follows.
        """
        ...


Following = Callable[[], RunningCandidate | None]
"""Gives the candidate to fit next; None if there is none until another one is ready."""

Attempt = tuple[RunningCandidate, Outcome | TwoscaleError]


def in_turn(fitter: Fitter, following: Following) -> Iterator[Attempt]:
    """Fit candidates one after the other."""
    while (one := following()) is not None:
        try:
            yield one, fitter.fit(one.step.candidate, one.deadline)
        except TwoscaleError as error:
            yield one, error


def log_trial(trial: Trial) -> None:
    """Tell the log of a candidate that was tried."""
    failure = f"failed: {trial.failure}"
    result = failure if trial.outcome is None else f"mean validation error {percent(trial.error)}"
    label, seconds = trial.candidate.label, duration_text(trial.seconds)
    LOGGER.info("tried %s (%s) in %s: %s", label, trial.reason, seconds, result)


def trial_of(attempted: RunningCandidate, result: Outcome | TwoscaleError, now: float) -> Trial:
    """Return what became of a candidate that was fitted.

    The error of the first one is raised, and so is that of data that cannot be read.
    """
    step, expected = attempted.step, attempted.expected
    candidate, outcome, failure = step.candidate, None, None
    if not isinstance(result, TwoscaleError):
        outcome = result
    elif expected is None or isinstance(result, UnreadableDataError):
        raise result
    else:
        failure = str(result)
    if outcome is not None and not math.isfinite(outcome.error):
        outcome, failure = None, "its predictions are not finite"
    if outcome is not None and outcome.epochs is not None:  # perhaps fewer than were asked for
        candidate = replace(candidate, epochs=math.ceil(outcome.epochs))
    return Trial(candidate, step.reason, expected, now - attempted.began, outcome, failure)
