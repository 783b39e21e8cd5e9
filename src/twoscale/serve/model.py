"""A surrogate as it is served: predictions of fields, and a map between vectors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.samples import check_prediction, read_shape, sample_shape
from twoscale.fields.source import Batch
from twoscale.serve.batching import QueuedCall, Tensors
from twoscale.serve.derivatives import gradient, hessian_action, jacobian_action
from twoscale.serve.mappings import Points, input_map, points_from
from twoscale.surrogate import Surrogate
from twoscale.surrogate.assessment import assessed
from twoscale.surrogate.prediction import PredictionInputs, predicted_space, prediction_inputs

SINGLE_NAME = "forward"
"""The name of the model where there is only one: a convention of UM-Bridge."""

_SINGLE, _DOUBLE = 4, 8  # bytes of a number
_POINT_BYTES = 200  # of one point: its coordinates, nodes, weights, and the values around it


class VectorOperation(NamedTuple):
    """What UM-Bridge may ask of a map between vectors.

    `compute` takes the map, the input vectors, the places of those that are differentiated, and
    the further vectors. `places` are their keys in a request; the further vectors are called sens,
    of the output's size, and vec, of the size of the last place.
    """

    compute: Callable[..., Tensor]
    places: tuple[str, ...] = ()
    takes_sens: bool = False
    takes_vec: bool = False


OPERATIONS = {
    "Evaluate": VectorOperation(torch.no_grad()(lambda function, vectors: function(vectors))),
    "Gradient": VectorOperation(gradient, ("inWrt",), takes_sens=True),
    "ApplyJacobian": VectorOperation(jacobian_action, ("inWrt",), takes_vec=True),
    "ApplyHessian": VectorOperation(
        hessian_action, ("inWrt1", "inWrt2"), takes_sens=True, takes_vec=True
    ),
}
"""The operations by the names of their endpoints."""


class FieldRequest(NamedTuple):
    """What a request for a prediction holds."""

    model: ServedModel
    fields: np.ndarray | None
    parameters: np.ndarray | None
    level: float | None = None  # of radii, if the prediction is to be assessed
    resample: bool = False  # fields may be on another grid


class MemoryNeed(NamedTuple):
    """What a request takes in memory once it is read."""

    samples: int
    bytes: int  # of fields and vectors, results included
    answered: int  # how many numbers the answer has


class ServedModel:
    """A fitted surrogate with a name.

    Parameters
    ----------
    surrogate
        A fitted surrogate.
    name
        What clients call it, "forward" by default.
    inputs
        What the input vector of UM-Bridge means: "fields" (default) for the values at all nodes,
        "kl:64" for 64 coefficients of the random field behind the inputs of the surrogate's
        problem. "kl:64,width=0.3" makes the threshold of a two-phase medium smooth.
    points
        Where the solution is wanted by UM-Bridge: "13x13" for a lattice of inner points, or an
        array (P, 2) of rows and columns from 0 to 1. By default at all nodes.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        name: str = SINGLE_NAME,
        *,
        inputs: str | None = None,
        points: str | np.ndarray | None = None,
    ) -> None:
        self.surrogate = surrogate
        self.name = name
        self.spaces = (surrogate.input_space_, surrogate.output_space_)
        self.input_map = input_map(inputs, self.spaces[0], surrogate.problem)
        self.points = None if points is None else points_from(points, self.spaces[1].grid)
        # In double precision, so that differences of values agree with derivatives.
        self._operator = copy.deepcopy(surrogate.operator_).double().requires_grad_(False)

    # Predictions of fields

    def memory_of_fields(self, asked: FieldRequest) -> MemoryNeed:
        """Return what a prediction will take, from shapes alone.

        Fields and predictions are held on the surrogate's grid, and predictions on the grid of the
        request as well. Raise a TwoscaleError if the shape is wrong.
        """
        inputs, outputs = self.spaces
        if asked.fields is None:
            shape = () if asked.parameters is None else asked.parameters.shape
            single = not shape or shape == (inputs.parameters,) != (1,)
            samples, space = 1 if single else shape[0], outputs
        else:
            options: dict[str, Any] = {"any_grid": asked.resample, "rank": self.surrogate.ranks_[0]}
            read, _ = read_shape(asked.fields.shape, "input", inputs, **options)
            samples, space = read[0], predicted_space(self.spaces, read, resample=asked.resample)
        numbers = samples * prod(space.shape)
        held = samples * (prod(inputs.shape) + prod(outputs.shape)) + numbers
        return MemoryNeed(samples, _SINGLE * held, numbers)

    def read(self, asked: FieldRequest) -> PredictionInputs:
        """Return inputs as a batch, or raise a TwoscaleError that says what is wrong."""
        inputs = prediction_inputs(
            asked.fields,
            asked.parameters,
            self.spaces,
            self.surrogate.ranks_[0],
            resample=asked.resample,
        )
        if not bool(torch.isfinite(inputs.batch.fields).all()):
            raise TwoscaleError("the inputs contain NaN or infinite values")
        self._check_values(inputs.batch)
        return inputs

    def _check_values(self, inputs: Batch) -> None:
        """Raise if the surrogate cannot read these values, such as the logarithm of a negative."""
        self.surrogate.operator_.code_operator.check_values(inputs)

    def prediction(self, inputs: PredictionInputs, level: float | None = None) -> QueuedCall:
        """Return what predicts the solutions of inputs, and with a level assesses them.

        Raise if the surrogate has no radii of that level.
        """
        if level is not None:
            self.surrogate.check_level(level)

        def work(arguments: Tensors) -> Tensors:
            batch = Batch.of(*arguments)
            if level is None:
                return (self.surrogate.predict_batch(batch),)
            trust = self.surrogate.trust_
            assert trust is not None  # by check_level
            found = assessed(self.surrogate, trust, batch, level=level, length=len(batch))
            return (found.fields, torch.as_tensor(found.radius), torch.as_tensor(found.outside))

        return QueuedCall((self.name, "predict", level), work, inputs.batch.tensors)

    def answer(self, inputs: PredictionInputs, results: Tensors) -> tuple[np.ndarray, ...]:
        """Return results as a user's arrays: fields, and radii and flags of an assessment.

        Raise if the fields are not finite.
        """
        check_prediction(inputs.batch, results[0], self._check_values)
        fields = inputs.result(results[0], self.spaces, self.surrogate.ranks_[1])
        return np.asarray(fields), *(result.numpy() for result in results[1:])

    # The map between vectors

    @property
    def input_sizes(self) -> list[int]:
        return self.input_map.sizes

    def output_size(self, points: Points | None) -> int:
        """Return the length of the one output vector."""
        if points is None:
            return prod(self.spaces[1].shape)
        return self.spaces[1].channels * len(points)

    @property
    def support(self) -> dict[str, bool]:
        """Return what UM-Bridge may ask for."""
        return {name: name == "Evaluate" or self.input_map.differentiable for name in OPERATIONS}

    def memory_of_vectors(self, points: Points | None) -> MemoryNeed:
        """Return what a value or derivative of the map between vectors will take."""
        grids = sum(prod(space.shape) for space in self.spaces)
        size = self.output_size(points)
        held = _DOUBLE * 2 * (grids + sum(self.input_sizes) + size)
        held += 0 if points is None else _POINT_BYTES * len(points)
        return MemoryNeed(1, held, max(*self.input_sizes, size))

    def chosen_points(self, coordinates: Any) -> Points | None:
        """Return the points of a request's configuration, or the model's own."""
        return self.points if coordinates is None else Points.on(self.spaces[1].grid, coordinates)

    def check_vectors(self, vectors: Sequence[Tensor]) -> None:
        """Raise if the surrogate cannot read the fields that vectors stand for."""
        self._check_values(self.input_map(vectors).to(self.surrogate.device))

    def vector_call(
        self,
        operation: str,
        vectors: Sequence[Tensor],
        points: Points | None = None,
        places: Sequence[int] = (),
    ) -> QueuedCall:
        """Return what computes an operation of the map from input vectors to values at points.

        `vectors`, (1, n) each, are the input vectors, then sens and vec where the operation takes
        them. `places` are the numbers of the input vectors that are differentiated.
        """

        def function(inputs: Sequence[Tensor]) -> Tensor:
            fields = self._operator(*self.input_map(inputs).tensors)
            return fields.flatten(1) if points is None else points(fields)

        def work(arguments: Tensors) -> Tensors:
            count = len(self.input_sizes)
            moved = [vector.to(self.surrogate.device) for vector in arguments]
            compute = OPERATIONS[operation].compute
            return (compute(function, moved[:count], *places, *moved[count:]).detach().cpu(),)

        key = (self.name, operation, None if points is None else points.key, *places)
        return QueuedCall(key, work, tuple(vectors))

    # In words

    def describe(self) -> dict[str, Any]:
        """Return what the model reads and gives, as plain values."""
        inputs, outputs = self.spaces
        problem, trust = self.surrogate.problem, self.surrogate.trust_
        shown = ["samples", *sample_shape(inputs, self.surrogate.ranks_[0])]
        return {
            "name": self.name,
            "method": self.surrogate.method,
            "problem": None if problem is None else problem.name,
            "input_shape": shown if inputs.channels else None,
            "parameters": inputs.parameters,
            "output_shape": ["samples", *sample_shape(outputs, self.surrogate.ranks_[1])],
            "assess": trust is not None and trust.band is not None,
            "umbridge": {
                "inputSizes": self.input_sizes,
                "outputSizes": [self.output_size(self.points)],
                "input": self.input_map.meaning,
                "support": self.support,
            },
        }


def load_models(
    runs: Sequence[Path],
    *,
    inputs: str | None = None,
    points: str | np.ndarray | None = None,
    device: str = "auto",
) -> list[ServedModel]:
    """Return the models of run folders: one is called forward, several by their folders' names."""
    names = [run.resolve().name for run in runs] if len(runs) > 1 else [SINGLE_NAME]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TwoscaleError(
            f"models are called by the names of their folders, and two are '{twice[0]}': rename one"
        )
    return [
        ServedModel(Surrogate.load(run, device=device), name, inputs=inputs, points=points)
        for run, name in zip(runs, names, strict=True)
    ]
