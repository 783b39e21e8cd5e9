"""Certificates: proven lower and upper bounds of the error of predicted fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch

from twoscale.problems import Problem
from twoscale.runtime.threads import one_thread
from twoscale.trust.energy import EnergyNorm
from twoscale.trust.given import Given, Part


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
    given = Given.of(prediction, input, problem)
    with one_thread():  # a part is small, and passes over it are many
        return Certificate.joined([certified(part) for part in given.parts()])


def certified(part: Part) -> Certificate:
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
