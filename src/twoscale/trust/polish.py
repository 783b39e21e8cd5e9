"""Polish: steps of the problem's own solver, from a prediction to a certified error."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.math.krylov import Error
from twoscale.problems import Problem
from twoscale.problems.diffusion import DiffusionSystem, with_boundary
from twoscale.problems.parameters import count
from twoscale.runtime.threads import one_thread
from twoscale.trust.certificate import CertifiableFields, Certificate, ScaledFields, certified
from twoscale.trust.energy import EnergyNorm

_MOST_STEPS = 500
_TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class Polished:
    """Fields after some steps of the solver, with what they cost and what is proven of them.

    Attributes
    ----------
    fields
        The fields in float64, of the shape and kind of the prediction, 0 on the boundary.
    steps
        Steps taken by each sample.
    certificate
        Bounds of the errors of `fields`.
    """

    fields: Any
    steps: np.ndarray
    certificate: Certificate


def polish(
    prediction: Any,
    input: Any,
    problem: Problem | str | None,
    *,
    steps: int | None = None,
    tolerance: float | None = None,
) -> Polished:
    """Return predictions after steps of conjugate gradients; this is the solver, not learning.

    The steps are preconditioned by the Laplacian, as in Darcy's solver. Of Poisson's equation the
    first step gives the exact discrete solution.

    Parameters
    ----------
    prediction, input, problem
        As for `certify`.
    steps
        Steps of each sample, at least 1; with a tolerance, the most of them. By default there are
        as many as the tolerance asks for.
    tolerance
        Between 0 and 1: a sample stops once its `relative_error_upper` is at most this. By default
        no sample stops early.

    Returns
    -------
    Polished
        The fields, the steps of each sample and the certificate.

    Examples
    --------
    >>> from twoscale import Darcy, Grid
    >>> problem = Darcy()
    >>> medium = problem.sample(Grid((17, 17)), [0, 1], seed=0)
    >>> polished = polish(0.9 * problem.solve(medium), medium, problem, tolerance=1e-6)
    >>> bool((polished.certificate.relative_error_upper <= 1e-6).all())
    True
    """
    check_amount(steps, tolerance)
    given = CertifiableFields.of(prediction, input, problem)
    fields, taken, certificates = [], [], []
    with one_thread():
        for part in given.parts():
            polished, needed = _polished(part, steps, tolerance)
            fields.append(polished.predicted * part.field_unit[:, None, None])
            taken.append(needed.cpu().numpy())
            certificates.append(certified(polished))
    certificate = Certificate.joined(certificates)
    if tolerance is not None and steps is None:
        _point_out_failures(certificate, tolerance)
    return Polished(given.result(torch.cat(fields)), np.concatenate(taken), certificate)


def check_amount(steps: int | None, tolerance: float | None) -> None:
    """Raise if these do not say how long to polish."""
    if steps is None and tolerance is None:
        raise TwoscaleError("say how long to polish: give a number of steps, or a tolerance")
    if steps is not None:
        count("steps", steps)
    number = isinstance(tolerance, (int, float)) and 0 < tolerance < 1
    if tolerance is not None and not number:
        raise TwoscaleError(f"the tolerance must be between 0 and 1, such as 1e-6, got {tolerance}")


def _polished(
    part: ScaledFields, steps: int | None, tolerance: float | None
) -> tuple[ScaledFields, Tensor]:
    """Return polished fields and the steps of each."""
    system = part.system
    result = system.solve(
        start=part.predicted[:, 1:-1, 1:-1],
        tolerance=tolerance or 0.0,
        max_steps=steps or _MOST_STEPS,
        error=None if tolerance is None else _relative_error(system),
    )
    return replace(part, predicted=with_boundary(result.solution)), result.iterations


def _relative_error(system: DiffusionSystem) -> Error:
    """Return the upper bound of the relative error that conjugate gradients compute by the way.

    ||x||^2 = h^2 (f - r)'x, and ||u||^2 is at least h^2 (f + r)'x. A field whose bound is no larger
    than its rounding error cannot be improved: its error is 0.
    """
    norm, right_side = EnergyNorm(system), system.right_side

    def error(solution: Tensor, residual: Tensor, preconditioned: Tensor) -> Tensor:
        one, other = norm.inner(right_side, solution), norm.inner(residual, solution)
        size, least = ((one + sign * other).clamp_min(_TINY).sqrt() for sign in (-1, 1))
        bound, rounding = norm.gradient_bound(preconditioned), norm.rounding(size, right_side)
        return torch.where(bound > rounding, (bound + 2 * rounding) / least, 0.0)

    return error


def _point_out_failures(certificate: Certificate, tolerance: float) -> None:
    bounds = certificate.relative_error_upper
    upper = bounds[np.isfinite(bounds)]
    if without := len(bounds) - len(upper):
        warnings.warn(
            f"{without} of {len(bounds)} fields have the solution 0, to which no error is relative",
            TwoscaleWarning,
            stacklevel=3,
        )
    missed = int((upper > tolerance).sum())
    if missed:
        warnings.warn(
            f"{missed} of {len(upper)} fields stayed above the tolerance {tolerance:.3g}, at most "
            f"{upper.max():.2g}: that is as near as double precision comes",
            TwoscaleWarning,
            stacklevel=3,
        )
