"""Predictions and their inputs as users have them, checked, a part of the samples at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.arrays import StoredRows
from twoscale.fields.grid import Grid
from twoscale.fields.samples import usual_array
from twoscale.fields.source import slices
from twoscale.problems import DiffusionProblem, Problem, get_problem, known_problems

_VALUES, _VALUES_CUDA = 2**16, 2**24  # nodes at a time: few enough to stay in a CPU's cache

Array = np.ndarray | Tensor | StoredRows


@dataclass(frozen=True)
class Given:
    """Predicted fields of an equation and the inputs they were predicted from."""

    problem: DiffusionProblem
    grid: Grid
    prediction: Array  # (samples, height, width), of any dtype; so are the inputs
    input: Array
    shape: tuple[int, ...]  # that the user's prediction has

    @classmethod
    def of(cls, prediction: Any, input: Any, problem: Problem | str | None) -> Given:
        """Return what a user gave, or say what is wrong with it; values are not looked at."""
        equation = elliptic(problem)
        fields = {"predicted": prediction, "input": input}
        arrays = {name: usual_array(array, f"{name} fields") for name, array in fields.items()}
        shapes = [_three_axes(array.shape, name) for name, array in arrays.items()]
        (samples, *sides), (inputs, *input_sides) = shapes
        if samples != inputs:
            raise TwoscaleError(
                f"there are {samples} predicted fields but {inputs} input fields: give the inputs "
                "that they were predicted from"
            )
        if sides != input_sides:
            raise TwoscaleError(
                f"predicted and input fields of {equation.name} have the same nodes, got "
                f"{Grid(*sides)} and {Grid(*input_sides)}"
            )
        grid = equation.grid(*sides)
        check_solved_on(equation, grid)
        one, other = (
            array if isinstance(array, StoredRows) else array.reshape(shape)
            for array, shape in zip(arrays.values(), shapes, strict=True)
        )
        return cls(equation, grid, one, other, tuple(arrays["predicted"].shape))

    def parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield predictions and inputs (batch, height, width), float64, once they are checked."""
        cuda = isinstance(self.prediction, Tensor) and self.prediction.is_cuda
        length = max(1, (_VALUES_CUDA if cuda else _VALUES) // self.grid.nodes)
        for part in slices(len(self.prediction), length):
            prediction = self._rows(self.prediction, part)
            inputs = self._rows(self.input, part).to(prediction.device)
            if not bool(prediction.isfinite().all()):
                raise TwoscaleError("the predicted fields contain NaN or infinite values")
            self._check_inputs(inputs)
            yield prediction, inputs

    def _rows(self, array: Array, part: slice) -> Tensor:
        if isinstance(array, Tensor):
            return array[part].detach().double()
        rows = np.concatenate(list(array[part].parts())) if isinstance(array, StoredRows) else array[part]
        return torch.from_numpy(np.array(rows, dtype=np.float64).reshape(-1, *self.grid.shape))

    def _check_inputs(self, inputs: Tensor) -> None:
        name = self.problem.name
        coefficient = self.problem.coefficient(inputs)
        if not bool(((coefficient > 0) & coefficient.isfinite()).all()):
            raise TwoscaleError(
                f"a certificate of {name} needs a coefficient that is positive everywhere, and "
                f"finite: the least of these inputs is {float(coefficient.min()):.3g}"
            )
        if not bool(self.problem.right_side(inputs).isfinite().all()):
            raise TwoscaleError(f"the input fields of {name} contain NaN or infinite values")

    def result(self, fields: Tensor) -> np.ndarray | Tensor:
        """Return fields (samples, height, width) in the shape and kind of the user's prediction."""
        shown = fields.reshape(self.shape)
        return shown if isinstance(self.prediction, Tensor) else shown.numpy()


def elliptic(problem: Problem | str | None) -> DiffusionProblem:
    """Return a problem of which errors can be certified, or raise."""
    found = get_problem(problem) if isinstance(problem, str) else problem
    if isinstance(found, DiffusionProblem):
        return found
    able = [name for name, one in known_problems().items() if isinstance(one, DiffusionProblem)]
    form = "an equation -div(a grad u) = f with u = 0 on the boundary"
    if found is None:
        raise TwoscaleError(
            f"a certificate needs {form}, but no problem is known: fit with problem=..., such as "
            f"{' or '.join(able)}"
        )
    came = found.name if isinstance(found, Problem) else repr(found)
    raise TwoscaleError(f"a certificate needs {form}, such as {' or '.join(able)}; got {came}")


def check_solved_on(problem: DiffusionProblem, grid: Grid) -> None:
    """Raise if fields on a grid are no solutions of the problem's equation there."""
    if not problem.solves(grid):
        raise TwoscaleError(
            f"fields of {problem.name} on {grid} nodes are thinned: they satisfy no equation on "
            "that grid, so there is no certificate"
        )


def _three_axes(shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Return (samples, height, width) of fields with or without axes of samples and channel."""
    given = tuple(int(side) for side in shape)
    if len(given) == 2:
        return (1, *given)
    if len(given) == 3:
        return given
    if len(given) == 4 and given[1] == 1:
        return (given[0], *given[2:])
    raise TwoscaleError(
        f"the {name} fields must have shape (samples, height, width), (samples, 1, height, width) "
        f"or (height, width), got {given}"
    )
