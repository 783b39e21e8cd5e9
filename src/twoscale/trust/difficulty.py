"""Scores that say, without the truth, which samples are difficult for a surrogate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import Batch
from twoscale.operators.operators import CodeOperator, FieldOperator
from twoscale.predictors.field_predictor import FieldPredictor
from twoscale.problems import DiffusionProblem, Problem
from twoscale.problems.diffusion import DiffusionSystem, in_solver_parts
from twoscale.runtime.threads import one_thread
from twoscale.trust.input_range import InputRange

Score = Callable[[Batch, Tensor], Tensor]
"""Returns (samples,) scores of inputs and their predictions."""

RESIDUAL, DISAGREEMENT, DISTANCE = "residual", "disagreement", "distance"
_STEPS = 3  # of the solver, towards the solution
_OPINIONS = 4  # members or images that are asked, at most


class Difficulty:
    """The scores of a surrogate's predictions.

    Parameters
    ----------
    operator, problem, known
        The fitted map, its equation if it is known, and the range of its inputs.
    kinds
        Names of the scores, by default the best that the surrogate allows: `RESIDUAL`, the length
        of three steps of the solver from the prediction, if the equation is elliptic; else
        `DISAGREEMENT` of its members, or of predictions from turned or mirrored inputs, if it has
        any. Always `DISTANCE`, how unusual the input is.
    """

    def __init__(
        self,
        operator: FieldOperator,
        problem: Problem | None,
        known: InputRange,
        kinds: Sequence[str] | None = None,
    ) -> None:
        self._operator, self._known = operator, known
        self._problem = problem
        self.kinds = tuple(kinds) if kinds is not None else self._best()
        scores: dict[str, Score] = {
            RESIDUAL: self._residual,
            DISAGREEMENT: self._disagreement,
            DISTANCE: lambda inputs, _: known(inputs).unusual,
        }
        unknown = [kind for kind in self.kinds if kind not in scores]
        if unknown:
            raise TwoscaleError(f"there is no score '{unknown[0]}' of a sample's difficulty")
        if RESIDUAL in self.kinds and not is_elliptic(problem, known.space):
            raise TwoscaleError(
                "this surrogate was calibrated with its equation, which is not known here: load it "
                "with problem=..., or calibrate it again"
            )
        self._scores = [scores[kind] for kind in self.kinds]

    def _best(self) -> tuple[str, ...]:
        if is_elliptic(self._problem, self._known.space):
            return (RESIDUAL, DISTANCE)
        code_operator = self._operator.code_operator
        several = members_of(code_operator) > 1 or len(code_operator.group) > 1
        return (DISAGREEMENT, DISTANCE) if several else (DISTANCE,)

    @property
    def usual_powers(self) -> list[float]:
        """Return the powers of scores in a sample's difficulty that hold without any evidence."""
        return [0.0 if kind == DISTANCE else 1.0 for kind in self.kinds]

    @torch.no_grad()
    def __call__(self, inputs: Batch, predicted: Tensor) -> Tensor:
        """Return the scores (samples, kinds) of inputs and their predictions, in float64."""
        return torch.stack([score(inputs, predicted).double() for score in self._scores], 1)

    def _residual(self, inputs: Batch, predicted: Tensor) -> Tensor:
        """Return ||step|| / ||prediction||, the step being that of conjugate gradients.

        On the boundary the step is the whole prediction: the solution is 0 there.
        """
        fields = inputs.fields
        if not len(fields):
            return fields.new_zeros(0)
        with one_thread():  # a part stays in cache, and passes over it are many
            return in_solver_parts(self._steps, torch.cat([fields, predicted.to(fields)], 1))

    def _steps(self, both: Tensor) -> Tensor:
        """Return the scores of inputs and predictions (batch, channels + 1, height, width)."""
        assert isinstance(self._problem, DiffusionProblem)
        system = self._problem.system_of_fields(both[:, :-1])
        predicted = both[:, -1].double()
        interior = predicted[:, 1:-1, 1:-1]
        left = DiffusionSystem(system.faces, system.right_side - system.apply(interior))
        step = left.solve(
            tolerance=0.0,
            max_steps=_STEPS if system.faces is not None else 1,  # which is exact where a is 1
        ).solution
        whole = predicted.clone()
        whole[:, 1:-1, 1:-1] = step
        return _length(whole) / _length(predicted).clamp_min(torch.finfo(torch.float64).tiny)

    def _disagreement(self, inputs: Batch, predicted: Tensor) -> Tensor:
        """Return how far opinions are from their mean, relative to the prediction."""
        opinions = torch.stack(list(self._opinions(inputs)))
        away = (opinions - opinions.mean(0)).square().mean(0).sqrt()
        return _length(away) / _length(predicted).clamp_min(torch.finfo(predicted.dtype).tiny)

    def _opinions(self, inputs: Batch) -> Iterator[Tensor]:
        """Yield what members predict, or what images of the inputs give."""
        code_operator = self._operator.code_operator
        if isinstance(code_operator.predictor, FieldPredictor) and members_of(code_operator) > 1:
            codes = code_operator.predictor.each(code_operator.encode(*inputs.tensors))
            for one in codes.chunk(code_operator.predictor.members)[:_OPINIONS]:
                yield code_operator.outputs.decode(one)
            return
        for symmetry in code_operator.group[:_OPINIONS]:
            yield symmetry.inverse(code_operator.predict_once(*inputs.map(symmetry).tensors))


def members_of(code_operator: CodeOperator) -> int:
    """Return how many networks a predictor takes the mean of."""
    predictor = code_operator.predictor
    return predictor.members if isinstance(predictor, FieldPredictor) else 1


def is_elliptic(problem: Problem | None, space: Space) -> bool:
    """Say whether fields on a grid are exact discrete solutions of a known elliptic equation."""
    return isinstance(problem, DiffusionProblem) and problem.solves(space.grid)


def _length(fields: Tensor) -> Tensor:
    return torch.linalg.vector_norm(fields.flatten(1), dim=1)
