"""The search itself: which candidate comes next, when it ends, what it has found.

Nothing here fits anything or reads a clock of its own: both are given, so that the same outcomes at
the same times always make the same search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol

from twoscale.errors import TwoscaleError
from twoscale.search.candidates import Candidate, Space
from twoscale.search.neighbours import LONGER, Step, longer_training, steps
from twoscale.search.timing import CAUTION, encoder_pace, expected_seconds
from twoscale.search.trials import PERFECT, Outcome, Search, Trial

DEFAULT_BUDGET = 120.0  # seconds

_RESERVE = 0.05  # of the budget, for the evaluation of what was found
_TRAINING_FROM = 0.3  # of the budget: then a long training takes the rest of it
_HOPE = 20.0  # times the least error: what a short training may have and a long one make up for
_HALF = 0.7  # of the time of a fit, if it learns from half of the samples


class Fitter(Protocol):
    """What fits candidates; it keeps the best one by itself."""

    validation_samples: int

    def fit(self, candidate: Candidate) -> Outcome:
        """Fit a candidate and judge it; a TwoscaleError means that it cannot be fitted."""
        ...

    def half_error(self, candidate: Candidate) -> float:
        """Return the validation error of a candidate that learns from half of the samples."""
        ...


Report = Callable[[Search, Candidate], None]


def search(
    space: Space,
    fitter: Fitter,
    *,
    budget: float,
    clock: Callable[[], float],
    report: Report | None = None,
) -> Search:
    """Return the search for the candidate of least validation error within `budget` seconds.

    It begins with the cheapest candidate and goes on from the best one so far, to the neighbour
    that is cheapest for the share of the error it may remove. The first is always fitted; no other
    is begun that is not expected to be ready in time. `clock` tells the seconds since the budget
    began.
    """
    found = Search(budget)
    seen: set[str] = set()
    step: Step | None = Step(space.first, "cheapest", 1.0)
    expected: float | None = None
    while step is not None:
        seen.add(space.identity(step.candidate))
        if report:
            report(found, step.candidate)
        found.trials.append(_attempt(step, expected, fitter, clock))
        step, expected = _next(found, space, fitter, seen, clock)
    _compare_with_half(found, space, fitter, clock, report)
    found.seconds = clock()
    return found


def _attempt(
    step: Step, expected: float | None, fitter: Fitter, clock: Callable[[], float]
) -> Trial:
    start = clock()
    outcome, failure = None, None
    try:
        outcome = fitter.fit(step.candidate)
    except TwoscaleError as error:
        if expected is None:  # the first: there is nothing to fall back on
            raise
        failure = str(error)
    if outcome is not None and not math.isfinite(outcome.error):
        outcome, failure = None, "its predictions are not finite"
    return Trial(step.candidate, step.reason, expected, clock() - start, outcome, failure)


def _next(
    found: Search, space: Space, fitter: Fitter, seen: set[str], clock: Callable[[], float]
) -> tuple[Step | None, float | None]:
    """Return the next step and its expected seconds; or no step, and `found` says why."""
    best = found.best
    if best is None:
        raise TwoscaleError(f"no surrogate could be fitted: {found.trials[0].failure}")
    left = _left(found, clock)
    new = [step for step in steps(best, space) if space.identity(step.candidate) not in seen]
    training = [
        step for step in _training(found, space, left) if space.identity(step.candidate) not in seen
    ]
    if training and (not new or clock() > _TRAINING_FROM * found.budget):
        new = training
    if not new:
        found.stopped = "nothing is left to try that may help"
        return None, None
    timed = [
        (expected_seconds(step.candidate, found, space, fitter.validation_samples), step)
        for step in new
    ]
    needed = [seconds * _times_needed(step.candidate, found, space) for seconds, step in timed]
    fitting = [one for one, seconds in zip(timed, needed, strict=True) if seconds <= left]
    if not fitting:
        found.stopped = f"the next candidate would take about {min(needed):.0f} s"
        return None, None
    seconds, step = min(fitting, key=lambda one: one[0] / one[1].share)
    return step, seconds


def _times_needed(candidate: Candidate, found: Search, space: Space) -> int:
    """Return how many times its own time must be left for a candidate to be of use.

    After an encoder's short training there must be time for a long one.
    """
    short = candidate.epochs and encoder_pace(found) is None and "epochs" not in space.given
    return 1 + LONGER if short else 1


def _training(found: Search, space: Space, left: float) -> Iterator[Step]:
    """Yield the training of an encoder that fills the time left, once a short one has been seen.

    It must have come near enough to the best candidate to pass it.
    """
    best, pace = found.best, encoder_pace(found)
    if best is None or pace is None:
        return
    probe, fixed, each = pace
    if best.error > PERFECT and probe.error < _HOPE * best.error:
        epochs = (left / CAUTION - fixed) / each
        for candidate in longer_training(space, probe.candidate, best.candidate, epochs):
            yield Step(candidate, "+ epochs", 1.0)


def _left(found: Search, clock: Callable[[], float]) -> float:
    return (1 - _RESERVE) * found.budget - clock()


def _compare_with_half(
    found: Search,
    space: Space,
    fitter: Fitter,
    clock: Callable[[], float],
    report: Report | None,
) -> None:
    """Learn from half of the samples, if there is time: what twice as many would bring."""
    best = found.best
    if best is None or _HALF * best.seconds > _left(found, clock) or space.samples < 8:
        return
    if report:
        report(found, best.candidate)
    try:
        found.half_error = fitter.half_error(best.candidate)
    except TwoscaleError:  # too few are left
        found.half_error = None
