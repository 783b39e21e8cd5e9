"""Search spaces by their sides; a fitter that knows outcomes, and a clock that moves by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.search.fitting import FieldFitter
from twoscale.search.space import Candidate, SearchSpace
from twoscale.search.trials import Outcome

Judge = Callable[[Candidate], Outcome]


def space_of(
    shape: tuple[int, int], samples: int, *arguments: Any, channels: int = 1, **options: Any
) -> SearchSpace:
    """Return the search space of inputs and outputs with one channel on the same grid."""
    space = Space(Grid(shape), channels)
    return SearchSpace(space, space, samples, *arguments, **options)


class FakeFitter(FieldFitter):
    """Fits nothing: `judge` says what comes out, `cost` how many seconds that takes.

    A training takes `epoch` seconds for each of its epochs besides, and ends by its deadline.
    """

    validation_samples = 200

    def __init__(
        self,
        judge: Judge,
        cost: Callable[[Candidate], float] = lambda candidate: 1.0,
        broken: Callable[[Candidate], bool] = lambda candidate: False,
        epoch: Callable[[Candidate], float] = lambda candidate: 1.0,
        measuring: float = 0.0,
        reserve: float = 0.0,
    ) -> None:
        self.judge, self.cost, self.broken, self.epoch = judge, cost, broken, epoch
        self.measuring, self._reserve = measuring, reserve
        self.time = 0.0
        self.fitted: list[Candidate] = []
        self.halves: list[Candidate] = []

    @property
    def reserve(self) -> float:
        return self._reserve

    def clock(self) -> float:
        return self.time

    def fit(self, candidate: Candidate, deadline: float | None = None) -> Outcome:
        self.time += self.cost(candidate)
        self.fitted.append(candidate)
        if self.broken(candidate):
            raise TwoscaleError("it is broken")
        if candidate.epochs is None:
            outcome = self.judge(candidate)
        else:
            outcome = self._trained(candidate, candidate.epochs, deadline)
        self.time += self.measuring
        return replace(outcome, measuring=self.measuring)

    def _trained(self, candidate: Candidate, epochs: int, deadline: float | None) -> Outcome:
        each = self.epoch(candidate)
        run = float(epochs)
        if deadline is not None:
            run = min(run, max(0.01, (deadline - self.time) / (each * candidate.members)))
        self.time += run * each * candidate.members
        reached = self.judge(replace(candidate, epochs=max(1, round(run))))
        return replace(reached, epochs=run, epoch_seconds=each * candidate.members)

    def half_error(self, candidate: Candidate, deadline: float | None = None) -> float:
        self.time += 0.5 * self.cost(candidate)
        self.halves.append(candidate)
        return 2 * self.judge(candidate).error


def linear(candidate: Candidate) -> Outcome:
    """A linear problem: input and code limit the error, no predictor or further sample helps."""
    if candidate.reads_fields:
        return Outcome(0.1, 0.1, 0.0, 4096, 4096)
    oracle = 1e-3 * 0.3**candidate.code
    if candidate.size is not None:
        oracle = 0.3 / candidate.size
    error = (oracle**2 + (0.3 * (1 - candidate.input_variance)) ** 2) ** 0.5
    return Outcome(error, error, oracle, round(3 / (1 - candidate.input_variance)), 300)


def curved(candidate: Candidate) -> Outcome:
    """A non-linear problem: a kernel learns it, and the better the more fields there are."""
    if candidate.reads_fields:
        return Outcome(1.0, 1.0, 0.0, 4096, 4096)
    code = round(3 / (1 - candidate.input_variance))
    if candidate.predictor != "kernel":
        return Outcome(0.04, 0.038, 0.002, code, 300)
    error = 0.02 * (1000 / (candidate.samples or 1600)) ** 0.5
    error *= 0.5 if candidate.symmetries != "none" else 1.0
    tuned = (("kernel", "matern-5/2"), ("length_scale", 2.0), ("ridge", 1e-9))
    return Outcome(error, 0.002, 0.002, code, 300, tuned)
