"""Search spaces by their sides; a fitter that knows outcomes, and a clock that moves by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid, Space
from twoscale.search.candidates import Candidate, SearchSpace
from twoscale.search.trials import Outcome

Judge = Callable[[Candidate], Outcome]


def space_of(
    shape: tuple[int, int], samples: int, *arguments: Any, channels: int = 1, **options: Any
) -> SearchSpace:
    """Return the search space of inputs and outputs with one channel on the same grid."""
    space = Space(channels, Grid(*shape))
    return SearchSpace(space, space, samples, *arguments, **options)


class FakeFitter:
    """Fits nothing: `judge` says what comes out, `cost` how many seconds that takes."""

    validation_samples = 200

    def __init__(
        self,
        judge: Judge,
        cost: Callable[[Candidate], float] = lambda candidate: 1.0,
        broken: Callable[[Candidate], bool] = lambda candidate: False,
    ) -> None:
        self.judge, self.cost, self.broken = judge, cost, broken
        self.time = 0.0
        self.fitted: list[Candidate] = []
        self.halves: list[Candidate] = []

    def clock(self) -> float:
        return self.time

    def fit(self, candidate: Candidate) -> Outcome:
        self.time += self.cost(candidate)
        self.fitted.append(candidate)
        if self.broken(candidate):
            raise TwoscaleError("it is broken")
        return self.judge(candidate)

    def half_error(self, candidate: Candidate) -> float:
        self.time += 0.5 * self.cost(candidate)
        self.halves.append(candidate)
        return 2 * self.judge(candidate).error


def linear(candidate: Candidate) -> Outcome:
    """A linear problem: input and code limit the error, no predictor or further sample helps."""
    oracle = 1e-3 * 0.3**candidate.code
    if candidate.size is not None:
        oracle = 0.3 / candidate.size
    error = (oracle**2 + (0.3 * (1 - candidate.input_variance)) ** 2) ** 0.5
    return Outcome(error, error, oracle, round(3 / (1 - candidate.input_variance)), 300)


def curved(candidate: Candidate) -> Outcome:
    """A non-linear problem: a kernel learns it, and the better the more fields there are."""
    code = round(3 / (1 - candidate.input_variance))
    if candidate.predictor != "kernel":
        return Outcome(0.04, 0.038, 0.002, code, 300)
    error = 0.02 * (1000 / (candidate.samples or 1600)) ** 0.5
    error *= 0.5 if candidate.symmetries != "none" else 1.0
    tuned = (("kernel", "matern-5/2"), ("length_scale", 2.0), ("ridge", 1e-9))
    return Outcome(error, 0.002, 0.002, code, 300, tuned)
