"""The search itself: which candidate comes next, and when it ends.

Fitter and clock are arguments, so that the same outcomes at the same times always make the same
search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from twoscale.errors import TwoscaleError
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.texts import duration_text, percent
from twoscale.search.advice import PERFECT
from twoscale.search.candidates import Candidate, SearchSpace
from twoscale.search.journal import Journal, Resumed, Underway
from twoscale.search.neighbours import LONGER, Step, longer_training, steps
from twoscale.search.timing import CAUTION, expected_seconds, training_pace
from twoscale.search.trials import Outcome, Search, Trial

DEFAULT_BUDGET = 120.0  # seconds

INTERRUPTED = "interrupted"
NO_TIME = "the next candidate"  # first words of the reason of a search that was short of time

_RESERVE = 0.05  # of the budget, for the evaluation of what was found
_TRAINING_FROM = 0.3  # of the budget: from then on a long training comes first
_HOPE = 20.0  # times the least error: a short training of more is not followed by a long one
_HALF = 0.7  # of the time of a fit: a fit on half of the samples


class Fitter(Protocol):
    """What fits candidates, and keeps the best one."""

    validation_samples: int

    def fit(self, candidate: Candidate) -> Outcome:
        """Fit a candidate and measure it; a TwoscaleError means that it cannot be fitted."""
        ...

    def half_error(self, candidate: Candidate) -> float:
        """Return the validation error of a candidate that learns from half of the samples."""
        ...


Report = Callable[[Search, str], None]
"""Called with the search so far, and with the candidate that is fitted now."""


def search(
    space: SearchSpace,
    fitter: Fitter,
    *,
    budget: float,
    clock: Callable[[], float],
    report: Report | None = None,
    journal: Journal | None = None,
    resumed: Resumed | None = None,
) -> Search:
    """Return the search for the candidate of least validation error within `budget` seconds.

    It starts with the cheapest candidate. The next one is always a neighbour of the best one so
    far: that with the fewest expected seconds per share of the error it may remove. The first is
    always fitted; another only if it should be ready in time. An interruption ends the search with
    the best one so far, if there is one. `clock` returns the seconds since the budget began. A
    `journal` notes each candidate before it is fitted; a search that it `resumed` goes on.
    """
    found = Search(budget, resumed.trials if resumed else [])
    cheapest = Underway(Step(space.first, "cheapest", 1.0), None, clock())
    first = resumed.underway if resumed else cheapest
    try:
        _explore(found, space, fitter, clock, report, journal, first)
        _compare_with_half(found, space, fitter, clock, report)
    except KeyboardInterrupt:
        if found.best is None:
            raise
        found.stopped = found.stopped or INTERRUPTED
    found.seconds = clock()
    return found


def _explore(
    found: Search,
    space: SearchSpace,
    fitter: Fitter,
    clock: Callable[[], float],
    report: Report | None,
    journal: Journal | None,
    first: Underway,
) -> None:
    """Try one candidate after the other until none is left; `found.stopped` says why."""
    seen = {space.identity(trial.candidate) for trial in found.trials}
    underway = first
    while True:
        candidate = underway.step.candidate
        seen.add(space.identity(candidate))
        if report:
            report(found, candidate.label)
        if journal:
            journal.begin(found.trials, underway)
        found.trials.append(_attempt(underway, fitter, clock))
        _log(found.trials[-1])
        step, expected = _next(found, space, fitter, seen, clock)
        if step is None:
            return
        underway = Underway(step, expected, clock())


def _log(trial: Trial) -> None:
    failure = f"failed: {trial.failure}"
    result = failure if trial.outcome is None else f"validation error {percent(trial.error)}"
    label, seconds = trial.candidate.label, duration_text(trial.seconds)
    LOGGER.info("tried %s (%s) in %s: %s", label, trial.reason, seconds, result)


def _attempt(underway: Underway, fitter: Fitter, clock: Callable[[], float]) -> Trial:
    step, expected = underway.step, underway.expected
    outcome, failure = None, None
    try:
        outcome = fitter.fit(step.candidate)
    except TwoscaleError as error:
        if expected is None:  # the first: there is no other result
            raise
        failure = str(error)
    if outcome is not None and not math.isfinite(outcome.error):
        outcome, failure = None, "its predictions are not finite"
    seconds = clock() - underway.began
    return Trial(step.candidate, step.reason, expected, seconds, outcome, failure)


def _next(
    found: Search, space: SearchSpace, fitter: Fitter, seen: set[str], clock: Callable[[], float]
) -> tuple[Step | None, float | None]:
    """Return the next step and its expected seconds; or None, and `found.stopped` says why."""
    if found.best is None:
        raise TwoscaleError(f"no surrogate could be fitted: {found.trials[0].failure}")
    left = _left(found, clock)
    groups = [list(steps(found, space)), list(_training(found, space, left))]
    if clock() > _TRAINING_FROM * found.budget:
        groups.reverse()
    missed: list[tuple[float, Step]] = []  # with the seconds they would need
    for group in groups:
        fitting = []
        for step in group:
            if space.identity(step.candidate) in seen:
                continue
            seconds = expected_seconds(step.candidate, found, space, fitter.validation_samples)
            needed = seconds * _times_needed(step.candidate, found, space)
            if needed <= left:
                fitting.append((seconds, step))
            else:
                missed.append((needed, step))
        if fitting:
            seconds, step = min(fitting, key=lambda one: one[0] / one[1].share)
            return step, seconds
    found.stopped = _reason(missed, found, space)
    return None, None


def _reason(missed: Sequence[tuple[float, Step]], found: Search, space: SearchSpace) -> str:
    """Return why a search ends: no candidate is left, or there is no time for the next one."""
    if not missed:
        return "no other candidate may help"
    needed, step = min(missed, key=lambda one: one[0])
    several = _times_needed(step.candidate, found, space) > 1
    name = f"{step.candidate.label} ({step.reason})"
    name += " and a longer training after it" if several else ""
    return f"{NO_TIME}, {name}, would take about {duration_text(needed)}"


def _times_needed(candidate: Candidate, found: Search, space: SearchSpace) -> int:
    """Return how many times a candidate's own time must be left for it to be of use.

    After a short training there must be time for the long one.
    """
    short = candidate.epochs and training_pace(found) is None and "epochs" not in space.given
    return 1 + LONGER if short else 1


def _training(found: Search, space: SearchSpace, left: float) -> Iterator[Step]:
    """Yield the long training that fills the time left, after a short one.

    The error of the short one must be below 20 times the least. If the time is too short for a
    useful training, the shortest useful one is yielded.
    """
    best, pace = found.best, training_pace(found)
    failed = any(trial.candidate.epochs and not trial.outcome for trial in found.trials)
    if best is None or pace is None or failed:
        return
    if best.error > PERFECT and pace.trial.error < _HOPE * best.error:
        epochs = (left / CAUTION - pace.fixed) / pace.epoch
        for candidate in longer_training(space, pace.trial.candidate, best.candidate, epochs):
            yield Step(candidate, "+ epochs", 1.0)


def _left(found: Search, clock: Callable[[], float]) -> float:
    return (1 - _RESERVE) * found.budget - clock()


def _compare_with_half(
    found: Search,
    space: SearchSpace,
    fitter: Fitter,
    clock: Callable[[], float],
    report: Report | None,
) -> None:
    """Fit the best candidate on half of the samples, if there is time."""
    best = found.best
    if best is None or _HALF * best.seconds > _left(found, clock) or space.samples < 8:
        return
    if report:
        report(found, f"{best.candidate.label} on half of the samples")
    try:
        half = fitter.half_error(best.candidate)
    except TwoscaleError:  # too few are left, or memory was short
        return
    found.half_error = half if math.isfinite(half) else None
