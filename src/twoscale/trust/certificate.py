"""Certificates: proven lower and upper bounds of the error of predicted fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.arrays import StoredRows
from twoscale.fields.samples import read_shape, usual_array
from twoscale.fields.source import Shape, slices
from twoscale.problems import PROBLEMS, DiffusionProblem, Problem, get_problem
from twoscale.problems.diffusion import DiffusionSystem
from twoscale.runtime.threads import one_thread
from twoscale.trust.energy import EnergyNorm

_VALUES, _VALUES_CUDA = 2**16, 2**24  # nodes at a time: few enough to stay in a CPU's cache

Array = np.ndarray | Tensor | StoredRows


@dataclass(frozen=True)
class Certificate:
    """Proven bounds of the errors of predicted fields, one number per sample, float64.

    The error is e = u - û at the interior nodes, u being the exact discrete solution. Its energy
    norm is ||e|| = h sqrt(e'Ae), with h² the area of a cell.

    Attributes
    ----------
    energy_error_lower, energy_error_upper
        Bounds of ||e||.
    relative_error_lower, relative_error_upper
        Bounds of ||e|| / ||u||. The upper one is infinite where the bounds do not exclude u = 0; in
        JSON files it is then null.
    boundary_error
        The largest |û| on the boundary, where u is 0. The energy norm leaves these nodes out.
    """

    energy_error_lower: np.ndarray
    energy_error_upper: np.ndarray
    relative_error_lower: np.ndarray
    relative_error_upper: np.ndarray
    boundary_error: np.ndarray

    def __len__(self) -> int:
        return len(self.energy_error_upper)

    def as_dict(self) -> dict[str, np.ndarray]:
        """Return the arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return one certificate of the samples of several."""
        arrays = [part.as_dict() for part in parts]
        return cls(**{name: np.concatenate([one[name] for one in arrays]) for name in arrays[0]})


def certify(prediction: Any, input: Any, problem: Problem | str | None) -> Certificate:
    """Return proven bounds of the error of each predicted field; no solution is computed.

    Parameters
    ----------
    prediction
        Predicted fields: (samples, height, width), with an axis of one channel, or one field. Any
        array that `Surrogate.predict` takes, in its own precision.
    input
        The input fields they were predicted from, in the same ways.
    problem
        The equation, by name or as an object: `Poisson`, `Darcy` or another `DiffusionProblem`.

    Returns
    -------
    Certificate
        The bounds. They hold for the field with 0 on its boundary.

    Examples
    --------
    >>> from twoscale import Darcy, Grid
    >>> problem = Darcy()
    >>> medium = problem.sample(Grid((17, 17)), [0, 1], seed=0)
    >>> certificate = certify(0.9 * problem.solve(medium), medium, problem)
    >>> print(certificate.relative_error_lower.round(2), certificate.relative_error_upper.round(2))
    [0.1 0.1] [0.1 0.1]
    """
    given = CertifiableFields.of(prediction, input, problem)
    with one_thread():  # a part is small, and passes over it are many
        return Certificate.joined([certified(part) for part in given.parts()])


def certified(part: ScaledFields) -> Certificate:
    """Return the certificate of some fields."""
    norm = EnergyNorm(part.system)
    interior = part.predicted[:, 1:-1, 1:-1]
    residual = norm.residual(interior)
    error = norm.dual_norm(residual)
    solution = norm.solution_norm(interior, residual, error)
    edges = part.predicted.abs()
    edges[:, 1:-1, 1:-1] = 0.0
    known = (error.lower > 0) & (solution.upper > 0)
    bounds = (
        error.lower * part.energy_unit,
        error.upper * part.energy_unit,
        torch.where(known, error.lower / solution.upper, 0.0),
        torch.where(error.upper > 0, error.upper / solution.lower, 0.0),
        edges.flatten(1).amax(1) * part.field_unit,
    )
    return Certificate(*(bound.cpu().numpy() for bound in bounds))


@dataclass(frozen=True)
class ScaledFields:
    """Predicted fields and their systems, in units in which squares are far from underflow.

    Units are powers of two, so that no digit is lost. With a in units of b and f in units of c,
    fields are in units of c / b and the energy norm is in units of c / sqrt(b).
    """

    predicted: Tensor  # (batch, height, width), float64
    system: DiffusionSystem
    field_unit: Tensor  # (batch,)
    energy_unit: Tensor  # (batch,)

    @classmethod
    def scaled(cls, predicted: Tensor, system: DiffusionSystem) -> ScaledFields:
        """Return fields and their systems, each sample in units of its own."""
        a = torch.ones_like(predicted[:, 0, 0])
        faces = system.faces
        if faces is not None:
            a = _units(torch.cat([one.flatten(1) for one in faces], 1))
            faces = (faces[0] / a[:, None, None], faces[1] / a[:, None, None])
        f = _units(torch.cat([system.right_side.flatten(1), a[:, None] * predicted.flatten(1)], 1))
        field_unit = f / a
        return cls(
            predicted / field_unit[:, None, None],
            DiffusionSystem(faces, system.right_side / f[:, None, None]),
            field_unit,
            f / a.sqrt(),
        )


def _units(values: Tensor) -> Tensor:
    """Return powers of four (batch,), from 1/2 to 2 of which the largest value of each row is."""
    _, exponents = values.abs().amax(1).frexp()
    return torch.ldexp(torch.ones_like(values[:, 0]), 2 * exponents.div(2, rounding_mode="floor"))


@dataclass(frozen=True)
class CertifiableFields:
    """Predicted fields of an equation and the inputs they were predicted from."""

    problem: DiffusionProblem
    grid: Grid
    prediction: Array  # (samples, 1, height, width), of any dtype
    input: Array  # (samples, channels, height, width)
    shape: tuple[int, ...]  # that the user's prediction has

    @classmethod
    def of(cls, prediction: Any, input: Any, problem: Problem | str | None) -> CertifiableFields:
        """Return what a user gave, or say what is wrong with it; values are not looked at."""
        equation = elliptic(problem)
        inputs, outputs = (
            _with_shape(array, name, channels)
            for array, name, channels in zip(
                (input, prediction), ("input", "predicted"), equation.channels, strict=True
            )
        )
        (given, *inner), (made, *sides) = inputs[1], outputs[1]
        if given != made:
            raise TwoscaleError(
                f"there are {made} predicted fields but {given} input fields: give the inputs that "
                "they were predicted from"
            )
        spaces = [
            Space(Grid((height, width)), channels) for channels, height, width in (inner, sides)
        ]
        equation.check_spaces(*spaces)
        grid = spaces[1].grid
        if not equation.solves(grid):
            raise TwoscaleError(
                f"fields of {equation.name} on {grid} nodes are thinned: they satisfy no equation "
                "on that grid, so that there is no certificate"
            )
        shown = usual_array(prediction, "predicted fields").shape
        return cls(equation, grid, outputs[0], inputs[0], tuple(shown))

    def parts(self) -> Iterator[ScaledFields]:
        """Yield predictions with their systems, both checked, a few samples at a time."""
        cuda = isinstance(self.prediction, Tensor) and self.prediction.is_cuda
        length = max(1, (_VALUES_CUDA if cuda else _VALUES) // self.grid.nodes)
        for part in slices(len(self.prediction), length):
            prediction = self._rows(self.prediction, part)
            if not bool(prediction.isfinite().all()):
                raise TwoscaleError("the predicted fields contain NaN or infinite values")
            inputs = self._rows(self.input, part).to(prediction.device)
            self._check_inputs(inputs)
            yield ScaledFields.scaled(prediction[:, 0], self.problem.system_of_fields(inputs))

    def _rows(self, array: Array, part: slice) -> Tensor:
        """Return some samples (batch, channels, height, width)."""
        if isinstance(array, Tensor):
            return array[part].detach().double()
        if isinstance(array, StoredRows):
            values = np.concatenate(list(array[part].parts()))
        else:
            values = np.asarray(array[part])
        return torch.from_numpy(values.astype(np.float64)).reshape(
            len(values), -1, *self.grid.shape
        )

    def _check_inputs(self, inputs: Tensor) -> None:
        name = self.problem.name
        coefficient = self.problem.coefficient(inputs)
        if not bool(((coefficient > 0) & coefficient.isfinite()).all()):
            raise TwoscaleError(
                f"{name} needs a coefficient that is positive everywhere, and finite: the least of "
                f"these inputs is {float(coefficient.min()):.3g}"
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
    able = [name for name, kind in PROBLEMS.items() if issubclass(kind, DiffusionProblem)]
    form = "an equation -div(a grad u) = f with u = 0 on the boundary"
    if found is None:
        raise TwoscaleError(
            f"a certificate needs {form}, and which one these fields belong to is not known: only "
            f"fields of a known problem can be certified, such as {' or '.join(able)}"
        )
    came = found.name if isinstance(found, Problem) else repr(found)
    raise TwoscaleError(f"a certificate needs {form}, such as {' or '.join(able)}; got {came}")


def _with_shape(array: Any, name: str, channels: int) -> tuple[Array, Shape]:
    """Return an array of fields and its shape (samples, channels, height, width).

    The axes of one sample and of one channel may be missing. An array on disk keeps its own shape.
    """
    found = usual_array(array, f"{name} fields")
    shape, _ = read_shape(found.shape, name, Space(Grid((3, 3)), channels), any_grid=True)
    return found if isinstance(found, StoredRows) else found.reshape(shape), shape
