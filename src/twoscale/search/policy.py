"""The search itself: which candidate comes next, how long it may take, and when it ends.

The fitter and the clock are arguments, so that the same outcomes at the same times always make the
same search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from twoscale.errors import TwoscaleError, UnreadableDataError, WorkersError
from twoscale.runtime.texts import duration_text
from twoscale.search.advice import PERFECT
from twoscale.search.fitting import FieldFitter
from twoscale.search.journal import Journal
from twoscale.search.neighbours import longer_training, more_members, steps
from twoscale.search.space import Candidate, SearchSpace
from twoscale.search.timing import Pace, expected_seconds, training_pace
from twoscale.search.trials import Search, Trial

DEFAULT_BUDGET = 120.0  # seconds

INTERRUPTED = "interrupted"
NO_TIME = "the next candidate"  # first words of the reason of a search that was short of time

_SLACK = 0.02  # of the budget: no candidate is expected to end later
_TRAINING_FROM = 0.3  # of the budget: from then on a long training that should win comes first
_CHEAP = 0.05  # of the time left: such a candidate comes before any long training
_PROBE_ERROR_RATIO = (20.0, 100.0)  # to the least error: above, no long training follows
_PROBE = 0.125  # of the time left: a short training takes no more, nor all around it
_LEAST = 0.1  # of the budget must be left for a short training
_LONGER = 1.5  # times the seconds of the best training so far: a longer one has at least as many
_SURPLUS = 2.0  # times the epochs that should fit: the clock ends a training, not its last epoch
_HALF = 0.7  # of the time of a fit: a fit on half of the samples
_CAREFUL = 1.5  # times the seconds that errors took before: they are kept after a training


Report = Callable[[Search, str], None]
"""Called with the search so far, and with the candidate that is fitted now."""


def search(
    space: SearchSpace,
    fitter: FieldFitter,
    *,
    budget: float,
    clock: Callable[[], float],
    report: Report | None = None,
    journal: Journal | None = None,
) -> Search:
    """Return the search for the candidate of least validation error within `budget` seconds.

    It starts with the cheapest candidate. The next one is always a neighbour of the best one so
    far: that with the fewest expected seconds per share of the error it may remove. The first is
    always fitted; another only if it should be ready in time. Trainings are as long as the time
    allows, and end by a deadline. An interruption ends the search with the best one so far, if
    there is one. Data that cannot be read end it with an error. `clock` returns the seconds since
    the budget began. A `journal` notes each candidate before it is fitted; the search that it has
    read goes on.
    """
    found = Search(budget, list(journal.trials) if journal else [])
    policy = _Policy(found, space, fitter, clock)
    try:
        left = journal.running if journal else []
        _explore(policy, left if left or found.trials else [policy.first()], report, journal)
        _compare_with_half(policy, report)
    except KeyboardInterrupt:
        if found.best is None:
            raise
        found.stopped = found.stopped or INTERRUPTED
    found.seconds = clock()
    return found


def _explore(
    policy: _Policy, first: Sequence[Trial], report: Report | None, journal: Journal | None
) -> None:
    """Try candidates, the `first` ones before others, until none is left or runs.

    `found.stopped` says why.
    """
    found, running, waiting = policy.found, policy.running, list(first)

    def note() -> None:
        if report:
            report(found, ", ".join(trial.candidate.label for trial in running))
        if journal:
            journal.note(found.trials, running)

    def following() -> Trial | None:
        chosen = waiting.pop(0) if waiting else policy.next()
        if chosen is not None:
            running.append(chosen)
        if running:
            note()
        return chosen

    for trial, result in policy.fitter.attempts(following):
        running.remove(trial)
        found.trials.append(trial.ended(result, policy.clock()))
        found.trials[-1].log()
        if journal and not running:  # there may be no other candidate
            journal.note(found.trials, running)


@dataclass(frozen=True)
class _Policy:
    """A search so far, and what decides about its next candidate."""

    found: Search
    space: SearchSpace
    fitter: FieldFitter
    clock: Callable[[], float]
    running: list[Trial] = field(default_factory=list)

    @property
    def end(self) -> float:
        """Return the time at which the last candidate has to be ready."""
        return (1 - _SLACK) * self.found.budget - self.fitter.reserve

    @property
    def timed(self) -> bool:
        """Say whether trainings may be as long as the time allows."""
        return "epochs" not in self.space.given

    def first(self) -> Trial:
        """Return the cheapest candidate; a training has a share of the budget."""
        candidate, began = self.space.first, self.clock()
        self.space.identity(candidate)  # raises if a given setting is wrong
        probed = self.timed and candidate.probed
        deadline = began + _PROBE * (self.end - began) if probed else None
        return Trial(candidate, "cheapest", began=began, deadline=deadline)

    def next(self) -> Trial | None:
        """Return the next candidate; or None, and `found.stopped` says why if none is running."""
        found = self.found
        if found.best is None and self.running:
            return None
        if found.best is None:
            raise TwoscaleError(f"no surrogate could be fitted: {found.trials[0].failure}")
        end = self.end  # takes time at first: the reserve is measured
        began = self.clock()
        left = end - began
        others, trainings = (
            self._timed_steps(group, began, left)
            for group in (steps(found, self.space), self._long(left))
        )
        groups = [others, trainings]
        if began > _TRAINING_FROM * found.budget and self._training_should_win(left):
            groups = [[one for one in others if _time(one) <= _CHEAP * left], trainings, others]
        for group in groups:
            if fitting := [one for one in group if _time(one) <= left]:
                return min(fitting, key=lambda one: _time(one) / one.share)
        found.stopped = "" if self.running else _reason([*others, *trainings])
        return None

    def _timed_steps(self, group: Iterable[Trial], began: float, left: float) -> list[Trial]:
        """Return the steps whose candidates were not tried yet, with their times."""
        known = [trial.candidate for trial in (*self.found.trials, *self.running)]
        seen = {self.space.identity(one) for one in known}
        timed = []
        for step in group:
            if self.space.identity(step.candidate) not in seen:
                seconds, limit = self._seconds(step.candidate, left)
                deadline = None if limit is None else began + limit
                timed.append(replace(step, expected=seconds, began=began, deadline=deadline))
        return timed

    def _seconds(self, candidate: Candidate, left: float) -> tuple[float, float | None]:
        """Return how long a candidate should take, and after how long its training has to end.

        A short training has a share of the time left, a long one all of it.
        """
        found, expected = self.found, self.expected(candidate)
        if not self.timed:
            return expected, None
        pace = training_pace(found, candidate.predictor)
        if candidate.probed and pace is None:
            fixed = self.expected(replace(candidate, epochs=0))
            if fixed > _PROBE * left or left < _LEAST * found.budget:
                return max(fixed / _PROBE, _LEAST * found.budget), None
            return min(expected, fixed + _PROBE * left), fixed + _PROBE * left
        measuring = max(trial.outcome.measuring for trial in found.trials if trial.outcome)
        limit = left - _CAREFUL * measuring
        if candidate.probed and pace is not None:
            least = pace.fixed + _LONGER * pace.training
            return max(least, min(expected, left)), limit
        return expected, limit

    def expected(self, candidate: Candidate, *, anew: bool = False) -> float:
        """Return the seconds a candidate should take; with `anew` fitted from the start."""
        validation = self.fitter.validation_samples
        return expected_seconds(candidate, self.found, self.space, validation, anew=anew)

    def _training_should_win(self, left: float) -> bool:
        """Say whether a long training should win, if errors fall in proportion to the time."""
        best, pace = self.found.best, training_pace(self.found)
        if best is None or pace is None or left <= pace.fixed:
            return False
        return pace.trial.error * min(1.0, pace.training / (left - pace.fixed)) < best.error

    def _long(self, left: float) -> Iterator[Trial]:
        """Yield the long trainings that may follow short ones, that of the least error first."""
        predictors = dict.fromkeys(trial.candidate.predictor for trial in self.found.trials)
        training = {trial.candidate.predictor for trial in self.running}
        others = (predictor for predictor in predictors if predictor not in training)
        paces = (training_pace(self.found, predictor) for predictor in others)
        known = [pace for pace in paces if pace is not None]
        for pace in sorted(known, key=lambda pace: pace.trial.error):
            yield from self._longer(pace, left)

    def _longer(self, pace: Pace, left: float) -> Iterator[Trial]:
        """Yield the long training that fills the time left, after a short one.

        If it is r times as long, the error of the short one must be below r² times the least error,
        where r² counts as 20 at least and 100 at most. After the longest useful training, several
        networks may be averaged.
        """
        best, probed = self.found.best, pace.trial.candidate
        assert best is not None
        alike = [one for one in self.found.trials if one.candidate.predictor == probed.predictor]
        if any(trial.outcome is None for trial in alike):
            return
        time = max(left - pace.fixed, _LONGER * pace.training)
        least, most = _PROBE_ERROR_RATIO
        ratio = min(most, max(least, (time / max(pace.training, pace.epoch)) ** 2))
        if best.error <= PERFECT or pace.trial.error >= ratio * best.error:
            return
        epochs = _SURPLUS * time / pace.epoch
        for one in longer_training(self.space, probed, best.candidate, epochs):
            yield Trial(one, "+ epochs")
        for one in more_members(self.space, probed, time / max(pace.training, pace.epoch)):
            yield Trial(one, "+ networks")


def _time(trial: Trial) -> float:
    """Return the seconds that a step should take."""
    return trial.expected or 0.0


def _reason(missed: Sequence[Trial]) -> str:
    """Return why a search ends: no candidate is left, or there is no time for the next one."""
    if not missed:
        return "no other candidate may help"
    nearest = min(missed, key=_time)
    name = f"{nearest.candidate.label} ({nearest.reason})"
    return f"{NO_TIME}, {name}, would take about {duration_text(_time(nearest))}"


def _compare_with_half(policy: _Policy, report: Report | None) -> None:
    """Fit the best candidate on half of the samples, if there is time and something to learn."""
    found, space, fitter = policy.found, policy.space, policy.fitter
    best = found.best
    if best is None or best.error <= PERFECT or space.samples < 8:
        return
    anew = policy.expected(best.candidate, anew=True)
    if _HALF * max(anew, best.seconds) > policy.end - policy.clock():
        return
    if report:
        report(found, f"{best.candidate.label} on half of the samples")
    try:
        error = fitter.half_error(best.candidate, policy.end if policy.timed else None)
    except (UnreadableDataError, WorkersError):
        raise
    except TwoscaleError:  # too few are left, or memory was short
        return
    found.half_error = error if math.isfinite(error) else None
