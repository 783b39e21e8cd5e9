"""Measures of fields that involve an equation: its residual, and the flux across seams."""

from __future__ import annotations

from typing import TypeGuard

from torch import Tensor

from twoscale.domain.patches import Seams
from twoscale.math.measures import AffineMeasure, Compared, Measure, affine_measure, mean_of
from twoscale.math.traces import flux_trace
from twoscale.problems.base import Problem
from twoscale.problems.diffusion import DiffusionProblem


def has_coefficient(problem: object) -> TypeGuard[DiffusionProblem]:
    """Say whether a problem has a diffusion coefficient."""
    return hasattr(problem, "coefficient")


def has_flux(problem: Problem | None) -> TypeGuard[DiffusionProblem]:
    """Say whether a flux is worth measuring: there is a coefficient, and it varies with the input.

    With a fixed operator the flux is the normal derivative.
    """
    return has_coefficient(problem) and not problem.fixed_operator


def flux_trace_error(problem: DiffusionProblem, seams: Seams) -> AffineMeasure:
    """Return the mean error of the coefficient-weighted flux's jump across seams."""
    return affine_measure(
        lambda b: flux_trace(b.error, _coefficient(problem, b), seams),
        power=1,
        fixed=problem.fixed_operator,
    )


def flux_measures(problem: DiffusionProblem, seams: Seams) -> dict[str, Measure]:
    """Return jump and trace error of the coefficient-weighted flux across seams."""
    jump = mean_of(lambda b: flux_trace(b.prediction, _coefficient(problem, b), seams).abs())
    return {"flux_jump": jump, "flux_trace_error": flux_trace_error(problem, seams)}


def residual_rms(problem: Problem) -> AffineMeasure:
    """Return the RMS discrete residual of the prediction, over the problem's own nodes."""
    return affine_measure(
        lambda b: _residual(problem, b).flatten(2),
        power=2,
        fixed=problem.fixed_operator,
        equations=True,
    )


def residual_measures(problem: Problem) -> dict[str, Measure]:
    """Return mean-absolute and RMS discrete residual of the prediction.

    The number over all equations is the mean and the root mean square of theirs.
    """
    mean = mean_of(lambda b: _residual(problem, b).abs())
    return {"residual_mean_abs": mean, "residual_rms": residual_rms(problem)}


def _residual(problem: Problem, batch: Compared) -> Tensor:
    """Return the residual (batch, equations, height, width) of the prediction."""
    return _with_channels(problem.residual(batch.known_inputs, batch.prediction))


def _coefficient(problem: DiffusionProblem, batch: Compared) -> Tensor:
    """Return the coefficient (batch, 1, height, width)."""
    return _with_channels(problem.coefficient(batch.known_inputs))


def _with_channels(values: Tensor) -> Tensor:
    """Return values (batch, height, width) as those of one channel; others as they are."""
    return values[:, None] if values.ndim == 3 else values
