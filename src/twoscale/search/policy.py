"""The search itself: which candidate comes next, when it ends, what it has found.

Nothing here fits anything or reads a clock of its own: both are given, so that the same outcomes at
the same times always make the same search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from twoscale.errors import TwoscaleError
from twoscale.predictors.encoder import usual_cut
from twoscale.search.candidates import (
    LONGER,
    Candidate,
    Space,
    Step,
    less_input,
    longer_codes,
    longer_training,
    more_data,
    more_input,
    other_predictors,
)
from twoscale.search.kinds import KINDS, Sizes, work

DEFAULT_BUDGET = 120.0  # seconds

_MATTERS = 0.1  # of the squared error: a smaller part is not worth a candidate of its own
_FINE = 0.1  # what a step that only adjusts is hoped to remove of its share
_RESERVE = 0.05  # of the budget, for the evaluation of what was found
_CAUTION = 1.2  # expected times are exceeded as often as not
_CODE_GROWTH = 1.8  # of a code from one length to the next, roughly
_TRAINING_FROM = 0.3  # of the budget: then a long training takes the rest of it
_HOPE = 20.0  # times the least error: what a short training may have and a long one make up for
_HALF = 0.7  # of the time of a fit, if it learns from half of the samples
_PERFECT = 1e-6  # about what single precision can tell


@dataclass(frozen=True)
class Outcome:
    """What is known of a fitted candidate; errors are relative L2 errors of fields."""

    error: float  # of predictions on the validation fields
    training_error: float  # the same on training fields
    oracle: float  # of the nearest fields that the code can express, on the validation fields
    input_code: int
    output_code: int
    tuned: tuple[tuple[str, Any], ...] = ()  # settings the predictor has found for itself
    epoch_seconds: float | None = None  # of an encoder

    @property
    def shares(self) -> dict[str, float]:
        """Return the parts of the squared error that representation, data, predictor have in it.

        What the code cannot express; what is learned of the training fields but does not carry over
        to others; and what is not even learned of the training fields.
        """
        whole = max(self.error, _PERFECT) ** 2
        representation = min(1.0, self.oracle**2 / whole)
        gap = (self.error**2 - self.training_error**2) / whole
        data = min(max(0.0, gap), 1.0 - representation)
        predictor = 1.0 - representation - data
        return {"representation": representation, "data": data, "predictor": predictor}


@dataclass(frozen=True)
class Trial:
    """A candidate that was tried: why, at what time, and what came of it."""

    candidate: Candidate
    reason: str
    expected: float | None  # seconds, as predicted before
    seconds: float
    outcome: Outcome | None
    failure: str | None = None


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
        return min(fitted, key=_error, default=None)


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
    timed = [(expected_seconds(step.candidate, found, space, fitter), step) for step in new]
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
    short = candidate.epochs and _encoder_pace(found) is None and "epochs" not in space.given
    return 1 + LONGER if short else 1


def _training(found: Search, space: Space, left: float) -> Iterator[Step]:
    """Yield the training of an encoder that fills the time left, once a short one has been seen.

    It must have come near enough to the best candidate to pass it.
    """
    best, pace = found.best, _encoder_pace(found)
    if best is None or pace is None:
        return
    probe, fixed, each = pace
    if _error(best) > _PERFECT and _error(probe) < _HOPE * _error(best):
        epochs = (left / _CAUTION - fixed) / each
        for candidate in longer_training(space, probe.candidate, best.candidate, epochs):
            yield Step(candidate, "+ epochs", 1.0)


def _encoder_pace(found: Search) -> tuple[Trial, float, float] | None:
    """Return the best encoder so far, what its fit took besides epochs, and what an epoch took."""
    seen = [one for one in found.trials if one.outcome and one.outcome.epoch_seconds]
    if not seen:
        return None
    trial = min(seen, key=_error)
    assert trial.outcome is not None
    each = trial.outcome.epoch_seconds or 0.0
    return trial, max(0.0, trial.seconds - each * (trial.candidate.epochs or 0)), each


def _left(found: Search, clock: Callable[[], float]) -> float:
    return (1 - _RESERVE) * found.budget - clock()


def steps(best: Trial, space: Space) -> Iterator[Step]:
    """Yield what may improve on the best trial, with the share of its error it may remove."""
    outcome, candidate = best.outcome, best.candidate
    if outcome is None or outcome.error <= _PERFECT:
        return
    shares = outcome.shares
    representation, data = shares["representation"], shares["data"]
    if representation > _MATTERS:
        for one in longer_codes(space, candidate, outcome.output_code):
            yield Step(one, "+ code", representation)
    learnable = 1 - representation
    if learnable < _MATTERS:
        return
    main = candidate.predictor == "affine"  # what a linear map does not see it cannot make up for
    for one in more_input(candidate):
        yield Step(one, "+ input", learnable * (1.0 if main else _FINE))
    for one in other_predictors(space, candidate):
        yield Step(one, "predictor", learnable)
    if data > _MATTERS:
        for one in less_input(candidate):
            yield Step(one, "- input", data * _FINE / 2)
        for one in more_data(space, candidate, outcome.tuned):
            yield Step(one, "+ fields", data)


def expected_seconds(candidate: Candidate, found: Search, space: Space, fitter: Fitter) -> float:
    """Return how long a candidate should take, judged by the trials with the same predictor.

    Time is in proportion to work; the proportion is that of all such trials together, of all trials
    whatsoever where the predictor is new.
    """
    pace = _encoder_pace(found) if candidate.epochs else None
    if pace is not None and candidate.epochs:
        _, fixed, each = pace
        return _CAUTION * (fixed + each * candidate.epochs)
    done = [(trial, place) for place, trial in enumerate(found.trials) if trial.outcome]
    alike = [one for one in done if one[0].candidate.predictor == candidate.predictor]
    seconds = total = 0.0
    for trial, place in alike or done:
        sizes = _sizes(trial, trial.candidate, found.trials[:place], space, fitter)
        seconds += trial.seconds
        total += work(trial.candidate.predictor, sizes)
    best = found.best
    assert best is not None
    sizes = _sizes(best, candidate, found.trials, space, fitter)
    faster = KINDS[candidate.predictor].pace if space.accelerated and not alike else 1.0
    return _CAUTION * seconds / total * work(candidate.predictor, sizes) / faster


def _sizes(
    known: Trial, candidate: Candidate, before: Sequence[Trial], space: Space, fitter: Fitter
) -> Sizes:
    """Return the sizes of a candidate that comes after some trials, guessed from one near it."""
    assert known.outcome is not None
    base, outcome = known.candidate, known.outcome
    nodes = space.shape[0] * space.shape[1]
    lost = (1 - base.input_variance) / (1 - candidate.input_variance)
    longer = _CODE_GROWTH ** (candidate.code - base.code)
    earlier = [trial.candidate for trial in before]
    return Sizes(
        samples=space.samples,
        images=space.images if candidate.symmetries != "none" else 1,
        learned=min(candidate.samples or space.samples, space.samples),
        validation=fitter.validation_samples,
        nodes=nodes,
        patch_nodes=nodes if candidate.chain == "global" else space.patch_nodes,
        coarse_nodes=space.coarse_nodes,
        input_code=round(min(nodes, max(1.0, outcome.input_code * lost))),
        output_code=round(min(nodes, candidate.size or outcome.output_code * longer)),
        new_input=all(candidate.input_part != one.input_part for one in earlier),
        new_output=all(candidate.output_part != one.output_part for one in earlier),
        tuned=bool(candidate.tuned),
        epochs=candidate.epochs or 0,
        cells=round(nodes / usual_cut(space.shape) ** 2),
        width=space.encoder["width"],
    )


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


def _error(trial: Trial) -> float:
    return trial.outcome.error if trial.outcome is not None else math.inf
