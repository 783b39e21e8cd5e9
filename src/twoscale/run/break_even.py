"""The time of a run's predictions beside that of its equation's own solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs
from twoscale.runtime.stages import CALIBRATION, INFERENCE
from twoscale.surrogate import Surrogate
from twoscale.trust.break_even import BreakEven, compared_times


def prediction_seconds(metrics: Mapping[str, Any]) -> float | None:
    """Return the seconds of one prediction among many."""
    seconds, samples = metrics["timings"].get(INFERENCE.name), metrics.get("samples")
    return seconds / samples if seconds is not None and samples else None


def fit_seconds(metrics: Mapping[str, Any], search: Mapping[str, Any] | None) -> float:
    """Return the seconds of the fit, or of the whole search; the calibration is part of it."""
    timings = metrics["timings"]
    if search is not None:
        return float(search["seconds"] + timings.get(CALIBRATION.name, 0.0))
    return float(timings["total"] - timings.get(INFERENCE.name, 0.0))


def break_even(
    surrogate: Surrogate,
    test: Pairs,
    metrics: Mapping[str, Any],
    search: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return `break_even` for the metrics; nothing if the equation cannot be solved here."""
    problem = surrogate.problem
    if problem is None or not problem.solves(surrogate.output_space_.grid):
        return {}
    fields = test.on(surrogate.device, resident=False)
    try:
        times = compared_times(problem, surrogate.predict_batch, fields)
    except (TwoscaleError, NotImplementedError):  # inputs or an equation that solve refuses
        return {}
    return {"break_even": BreakEven(*times, fit_seconds(metrics, search)).as_dict()}
