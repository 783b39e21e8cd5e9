"""Measures of fields that involve an equation: its residual, and the flux across seams."""

from __future__ import annotations

from twoscale.fields.measures import AffineMeasure, Measure, affine_measure, flux_trace, mean_of
from twoscale.fields.patches import Seams
from twoscale.problems.base import Problem


def flux_trace_error(problem: Problem, seams: Seams) -> AffineMeasure:
    """Return the mean error of the coefficient-weighted flux's jump across seams."""
    return affine_measure(
        lambda b: flux_trace(b.error, problem.coefficient(b.known_inputs), seams),
        power=1,
        fixed=problem.fixed_operator,
    )


def flux_measures(problem: Problem, seams: Seams) -> dict[str, Measure]:
    """Return jump and trace error of the coefficient-weighted flux across seams."""
    jump = mean_of(
        lambda b: flux_trace(b.prediction, problem.coefficient(b.known_inputs), seams).abs()
    )
    return {"flux_jump": jump, "flux_trace_error": flux_trace_error(problem, seams)}


def residual_rms(problem: Problem) -> AffineMeasure:
    """Return the RMS discrete residual of the prediction over interior nodes."""
    return affine_measure(
        lambda b: problem.residual(b.known_inputs, b.prediction).flatten(1),
        power=2,
        fixed=problem.fixed_operator,
    )


def residual_measures(problem: Problem) -> dict[str, Measure]:
    """Return mean-absolute and RMS discrete residual of the prediction over interior nodes."""
    mean = mean_of(lambda b: problem.residual(b.known_inputs, b.prediction).abs())
    return {"residual_mean_abs": mean, "residual_rms": residual_rms(problem)}
