"""A surrogate as it is served: predictions of fields, and a map between vectors."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.samples import check_prediction, read_shape, sample_shape
from twoscale.serve.batching import Job, Tensors
from twoscale.serve.derivatives import VectorMap, gradient, hessian_action, jacobian_action
from twoscale.serve.mappings import Points, input_map, points_from
from twoscale.surrogate import Surrogate
from twoscale.surrogate.assessment import assessed
from twoscale.surrogate.inputs import Given, given_inputs, predicted_space

SINGLE_NAME = "forward"
"""The name of the model where there is only one: a convention of UM-Bridge."""

SUPPORT = ("Evaluate", "Gradient", "ApplyJacobian", "ApplyHessian")


_SINGLE, _DOUBLE = 4, 8  # bytes of a number
_POINT_BYTES = 200  # of one point: its coordinates, nodes, weights, and the values around it


class Memory(NamedTuple):
    """What a request takes in memory once it is read."""

    samples: int
    held: int  # bytes of fields and vectors, results included
    answered: int  # how many numbers the answer has


class Answer(NamedTuple):
    """Predicted fields, and with an assessment their radii and flags."""

    fields: np.ndarray
    radius: np.ndarray | None = None
    outside: np.ndarray | None = None


class Model:
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

    def memory_of_fields(
        self, fields: np.ndarray | None, parameters: np.ndarray | None, *, resample: bool = False
    ) -> Memory:
        """Return what a prediction will take, from shapes alone.

        Fields and predictions are held on the surrogate's grid, and predictions on the grid of the
        request as well. Raise a TwoscaleError if the shape is wrong.
        """
        inputs, outputs = self.spaces
        if fields is None:
            given = () if parameters is None else parameters.shape
            single = not given or given == (inputs.parameters,) != (1,)
            samples, space = 1 if single else given[0], outputs
        else:
            options: dict[str, Any] = {"any_grid": resample, "rank": self.surrogate.ranks_[0]}
            shape, _ = read_shape(fields.shape, "input", inputs, **options)
            samples, space = shape[0], predicted_space(self.spaces, shape, resample=resample)
        numbers = samples * prod(space.shape)
        held = samples * (prod(inputs.shape) + prod(outputs.shape)) + numbers
        return Memory(samples, _SINGLE * held, numbers)

    def read(self, fields: Any, parameters: Any, resample: bool = False) -> Given:
        """Return inputs as a field batch, or raise a TwoscaleError that says what is wrong."""
        given = given_inputs(
            fields, parameters, self.spaces, self.surrogate.ranks_[0], resample=resample
        )
        if not bool(torch.isfinite(given.fields).all()):
            raise TwoscaleError("the inputs contain NaN or infinite values")
        self._check_values(given.fields)
        return given

    def _check_values(self, fields: Tensor) -> None:
        """Raise if the surrogate cannot read these values, such as the logarithm of a negative."""
        self.surrogate.operator_.latent.inputs.check_values(fields)

    def prediction(self, given: Given) -> Job:
        """Return the job that predicts the solutions of inputs."""
        return Job((self.name, "predict"), self._predict, (given.fields,))

    def assessment(self, given: Given, level: float) -> Job:
        """Return the job that predicts and assesses, or raise if the surrogate has no radii."""
        self.surrogate.check_level(level)

        def work(arguments: Tensors) -> Tensors:
            trust = self.surrogate.trust_
            assert trust is not None  # by check_level
            found = assessed(
                self.surrogate, trust, arguments[0], level=level, length=len(arguments[0])
            )
            flags = (torch.as_tensor(one) for one in (found.radius, found.outside))
            return (found.fields, *flags)

        return Job((self.name, "assess", level), work, (given.fields,))

    def _predict(self, arguments: Tensors) -> Tensors:
        return (self.surrogate.predict_fields(arguments[0]),)

    def answer(self, given: Given, results: Tensors) -> Answer:
        """Return the results of a job as a user's arrays, or raise if they are not finite."""
        check_prediction(given.fields, results[0], self._check_values)
        fields = given.result(results[0], self.spaces, self.surrogate.ranks_[1])
        return Answer(np.asarray(fields), *(one.numpy() for one in results[1:]))

    # The map between vectors

    @property
    def input_sizes(self) -> list[int]:
        return self.input_map.sizes

    def output_sizes(self, points: Points | None) -> list[int]:
        """Return the length of the one output vector."""
        if points is None:
            return [prod(self.spaces[1].shape)]
        return [self.spaces[1].channels * len(points)]

    @property
    def support(self) -> dict[str, bool]:
        """Return what UM-Bridge may ask for."""
        return {name: name == "Evaluate" or self.input_map.differentiable for name in SUPPORT}

    def memory_of_vectors(self, points: Points | None) -> Memory:
        """Return what a value or derivative of the map between vectors will take."""
        grids = sum(prod(space.shape) for space in self.spaces)
        vectors = sum(self.input_sizes) + self.output_sizes(points)[0]
        held = _DOUBLE * (2 * grids + 2 * vectors)
        held += 0 if points is None else _POINT_BYTES * len(points)
        return Memory(1, held, max(*self.input_sizes, *self.output_sizes(points)))

    def chosen_points(self, given: Any) -> Points | None:
        """Return the points of a request's configuration, or the model's own."""
        if given is None:
            return self.points
        return Points.on(self.spaces[1].grid, given)

    def check_vectors(self, vectors: Sequence[Tensor]) -> None:
        """Raise if the surrogate cannot read the fields that vectors stand for."""
        self._check_values(self.input_map(vectors).to(self.surrogate.device))

    def evaluation(self, vectors: Sequence[Tensor], points: Points | None) -> Job:
        """Return the job that maps vectors (1, n) to a vector (1, m)."""
        function = self._map(points)

        @torch.no_grad()
        def work(arguments: Tensors) -> Tensors:
            return self._to_cpu(function(self._to_device(arguments)))

        return Job(self._key("Evaluate", points), work, tuple(vectors))

    def gradient(
        self, vectors: Sequence[Tensor], points: Points | None, place: int, sens: Tensor
    ) -> Job:
        """Return the job that gives sens' J for one of the vectors."""
        function = self._map(points)

        def work(arguments: Tensors) -> Tensors:
            *at, weight = self._to_device(arguments)
            return self._to_cpu(gradient(function, at, place, weight))

        return Job((*self._key("Gradient", points), place), work, (*vectors, sens))

    def jacobian(
        self, vectors: Sequence[Tensor], points: Points | None, place: int, direction: Tensor
    ) -> Job:
        """Return the job that gives J v for one of the vectors."""
        function = self._map(points)

        def work(arguments: Tensors) -> Tensors:
            *at, along = self._to_device(arguments)
            return self._to_cpu(jacobian_action(function, at, place, along))

        return Job((*self._key("ApplyJacobian", points), place), work, (*vectors, direction))

    def hessian(
        self,
        vectors: Sequence[Tensor],
        points: Points | None,
        places: tuple[int, int],
        sens: Tensor,
        direction: Tensor,
    ) -> Job:
        """Return the job that gives the change of sens' J along a direction."""
        function = self._map(points)

        def work(arguments: Tensors) -> Tensors:
            *at, weight, along = self._to_device(arguments)
            return self._to_cpu(hessian_action(function, at, places, weight, along))

        key = (*self._key("ApplyHessian", points), places)
        return Job(key, work, (*vectors, sens, direction))

    def _map(self, points: Points | None) -> VectorMap:
        def function(vectors: Sequence[Tensor]) -> Tensor:
            fields = self._operator(self.input_map(vectors))
            return fields.flatten(1) if points is None else points(fields)

        return function

    def _key(self, operation: str, points: Points | None) -> tuple[Any, ...]:
        return (self.name, operation, None if points is None else points.key)

    def _to_device(self, arguments: Tensors) -> list[Tensor]:
        return [one.to(self.surrogate.device) for one in arguments]

    def _to_cpu(self, result: Tensor) -> Tensors:
        return (result.detach().cpu(),)

    # In words

    def describe(self) -> dict[str, Any]:
        """Return what the model reads and gives, as plain values."""
        inputs, outputs = self.spaces
        problem = self.surrogate.problem
        shown = ["samples", *sample_shape(inputs, self.surrogate.ranks_[0])]
        return {
            "name": self.name,
            "method": self.surrogate.method,
            "problem": None if problem is None else problem.name,
            "input_shape": shown if inputs.field_channels else None,
            "parameters": inputs.parameters,
            "output_shape": ["samples", *sample_shape(outputs, self.surrogate.ranks_[1])],
            "assess": self.surrogate.trust_ is not None and self.surrogate.trust_.band is not None,
            "umbridge": {
                "inputSizes": self.input_sizes,
                "outputSizes": self.output_sizes(self.points),
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
) -> list[Model]:
    """Return the models of run folders: one is called forward, several by their folders' names."""
    names = [run.resolve().name for run in runs] if len(runs) > 1 else [SINGLE_NAME]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TwoscaleError(
            f"models are called by the names of their folders, and two are '{twice[0]}': rename one"
        )
    return [
        Model(Surrogate.load(run, device=device), name, inputs=inputs, points=points)
        for run, name in zip(runs, names, strict=True)
    ]
