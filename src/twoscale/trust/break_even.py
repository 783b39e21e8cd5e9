"""Break-even: after how many predictions a fit has won back its time from the solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from twoscale.fields.pairs import Pairs
from twoscale.fields.source import Batch
from twoscale.math.measures import over_channels, sample_errors
from twoscale.problems import DiffusionProblem, Problem
from twoscale.problems.diffusion import in_solver_parts, with_boundary
from twoscale.runtime.progress import now

_JUDGED, _LEAST = 2**18, 8  # nodes of the fields that tell the error to be reached; fields
_TIMED = 2**22  # nodes of the batch that time is taken with, at most
_MOST_STEPS = 60  # of conjugate gradients; the full solver needs fewer
_SECONDS = 0.1  # that a batch may take, unless one field alone takes longer
_REPEATS = 5  # of which the least time counts: everything else on the machine only adds to it

FULL = "the full solver"
Solve = Callable[[Tensor], Tensor]
"""From fields to fields."""


class Times(NamedTuple):
    """The time of a prediction, and of the fastest way to solve an equation as well."""

    prediction_seconds: float  # of one field, in a batch
    solver_seconds: float  # of one field, in a batch of the same fields
    solver: str  # in words
    error: float  # the surrogate's median relative L2 error


@dataclass(frozen=True)
class BreakEven:
    """The time of a prediction beside that of the solver.

    Attributes
    ----------
    prediction_seconds, solver_seconds
        Of one field, both in the same batch on the same device; the least of some repeats.
    solver, error
        How it was solved, in words, and the median relative L2 error it was to reach.
    fit_seconds
        Of the fit or the search; making the training fields does not count.
    """

    prediction_seconds: float
    solver_seconds: float
    solver: str
    error: float
    fit_seconds: float

    @property
    def paid_off_after(self) -> int | None:
        """Return how many predictions save the fit's time, to two digits; None if they save none.

        >>> BreakEven(0.001, 0.003, FULL, 0.01, 10.03).paid_off_after
        5000
        """
        saved = self.solver_seconds - self.prediction_seconds
        if saved <= 0:
            return None
        count = math.ceil(round(self.fit_seconds / saved, 6))
        return round(count, 2 - len(str(count))) if count > 99 else count

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return {**asdict(self), "paid_off_after": self.paid_off_after}


@torch.no_grad()
def compared_times(problem: Problem, predict: Callable[[Batch], Tensor], test: Pairs) -> Times:
    """Return the times in which test inputs are predicted, and solved for as well as that.

    The outputs must be solutions on their grid (`Problem.solves`). An elliptic equation may be
    solved by few steps of conjugate gradients. If its full solver is faster, or if the equation is
    of another kind, it is the full solver.
    """
    nodes = test.outputs.space.grid.nodes
    judged = max(_LEAST, _JUDGED // nodes)
    inputs = test.inputs.first(max(judged, _TIMED // nodes)).batch()
    truth = test.outputs.first(judged).batch().fields
    predicted = predict(inputs[:judged])
    error = float(over_channels(sample_errors(predicted, truth)).nanmedian())
    fields = inputs.fields  # parameters are no part of an equation
    ways: dict[str, Solve] = {FULL: problem.solve}
    if isinstance(problem, DiffusionProblem) and math.isfinite(error):
        steps = needed_steps(problem, fields[:judged], truth[:, 0], error)
        words = f"{steps} step{'s' if steps > 1 else ''} of conjugate gradients"
        ways[words] = lambda given: few_steps(problem, given, steps)
    count = min(batch_length(solve, fields) for solve in ways.values())
    seconds = {words: batch_seconds(solve, fields[:count]) for words, solve in ways.items()}
    fastest = min(seconds, key=seconds.__getitem__)
    return Times(batch_seconds(predict, inputs[:count]), seconds[fastest], fastest, error)


def needed_steps(problem: DiffusionProblem, inputs: Tensor, truth: Tensor, error: float) -> int:
    """Return the steps from zero after which half of the fields are at most as wrong as `error`.

    Inputs are (batch, channels, height, width), true fields (batch, height, width); errors are
    relative L2 errors.
    """
    system = problem.system_of_fields(inputs)
    wanted = truth[:, 1:-1, 1:-1].double()
    size = torch.linalg.vector_norm(wanted, dim=(1, 2)).clamp_min(torch.finfo(wanted.dtype).tiny)
    result = system.solve(
        tolerance=error,
        max_steps=_MOST_STEPS,
        error=lambda found, *_: torch.linalg.vector_norm(found - wanted, dim=(1, 2)) / size,
    )
    return max(1, int(result.iterations.median()))


def few_steps(problem: DiffusionProblem, inputs: Tensor, steps: int) -> Tensor:
    """Return the fields of inputs (batch, channels, height, width) after some solver steps."""

    def solve(part: Tensor) -> Tensor:
        return problem.system_of_fields(part).solve(tolerance=0.0, max_steps=steps).solution

    return with_boundary(in_solver_parts(solve, inputs))


def batch_length(solve: Solve, fields: Tensor) -> int:
    """Return how many fields are solved for at once in the time that a batch may take."""
    first = _elapsed(solve, fields[:1])  # it also loads libraries
    if first > _SECONDS * _REPEATS:
        return 1
    once = _elapsed(solve, fields[:1])
    return max(1, min(len(fields), int(_SECONDS / max(once, 1e-9))))


def batch_seconds(solve: Callable[[Any], Tensor], fields: Tensor | Batch) -> float:
    """Return the seconds of one field in a batch: the least of some repeats, after a first call.

    A batch that takes long is not repeated.
    """
    first = least = _elapsed(solve, fields)
    if first < _SECONDS * _REPEATS:
        least = min(_elapsed(solve, fields) for _ in range(_REPEATS))
    return least / len(fields)


def _elapsed(solve: Callable[[Any], Tensor], fields: Tensor | Batch) -> float:
    start = now()
    solve(fields)
    return now() - start
