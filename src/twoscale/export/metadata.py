"""What an exported file says of itself: names, shapes, origin and errors, in plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from twoscale._version import __version__
from twoscale.domain.space import Space
from twoscale.export.graph import FIELDS, PARAMETERS, PREDICTION
from twoscale.operators.operators import FieldOperator
from twoscale.problems import Problem, describe_problem
from twoscale.representation import Transformed
from twoscale.trust import LEVEL, Trust
from twoscale.trust.statistics import conformal_quantile, fewest_samples

FORMAT_VERSION = 1
_BATCH = "batch"


def describe(
    operator: FieldOperator,
    spaces: tuple[Space, Space],
    *,
    method: str,
    problem: Problem | None,
    training_samples: int,
    errors: Mapping[str, float | None],
    trust: Trust | None,
    metrics: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the metadata of an exported surrogate.

    `errors` are mean relative L2 errors by the samples they were measured on. `metrics` are those
    of an evaluation: their error and their mean radius are added.
    """
    inputs, outputs = spaces
    known = {name: error for name, error in errors.items() if error is not None}
    measured = dict(metrics or {})
    if "mean_relative_l2" in measured:
        known[str(measured.get("measured_on", "test"))] = measured["mean_relative_l2"]
    return {
        "twoscale": __version__,
        "format_version": FORMAT_VERSION,
        "method": method,
        "problem": None if problem is None else describe_problem(problem),
        "inputs": _inputs(operator, inputs),
        "outputs": {PREDICTION: _fields(outputs)},
        "training_samples": training_samples,
        "mean_relative_l2": known,
        "radius": _radius(trust, measured.get("trust") or {}),
    }


def _fields(space: Space) -> dict[str, Any]:
    """Return what fields of a space are, without their parameters."""
    height, width = space.grid.shape
    return {
        "type": "float32",
        "shape": [_BATCH, space.channels, height, width],
        "axes": [_BATCH, "channels", "height", "width"],
        "channels": list(space.channel_names),
        "periodic": list(space.grid.periodic),
        "spacing": list(space.grid.spacing),
    }


def _inputs(operator: FieldOperator, space: Space) -> dict[str, Any]:
    """Return what the graph takes, by the names of its inputs."""
    found: dict[str, Any] = {}
    if space.channels:
        found[FIELDS] = _fields(space)
    if space.parameters:
        found[PARAMETERS] = {
            "type": "float32",
            "shape": [_BATCH, space.parameters],
            "axes": [_BATCH, "parameters"],
            "names": list(space.parameter_names),
        }
    read, scalars = operator.code_operator.inputs, operator.code_operator.scalars
    used = read.kinds if isinstance(read, Transformed) else ("none",) * space.channels
    used += () if scalars is None else scalars.kinds
    if set(used) != {"none"}:  # values that are not positive give NaN
        kinds = dict(zip(space.labels, used, strict=True))
        for described in found.values():
            names = described.get("channels", described.get("names"))
            described["positive"] = [name for name in names if kinds[name] != "none"]
    return found


def _radius(trust: Trust | None, measured: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the radius of relative L2 errors that holds for 95 % of fresh samples.

    A sample's radius is `unscaled` times the product of its scores to their powers. Without any
    power above zero all samples have one radius. `mean` is that of the samples of an evaluation.
    """
    band = None if trust is None else trust.band
    if trust is None or band is None or len(band.ratios) < fewest_samples(LEVEL):
        return None
    powers = band.powers.tolist()
    unscaled = conformal_quantile(band.ratios, LEVEL)
    found: dict[str, Any] = {
        "level": LEVEL,
        "relative_to": "norm of the prediction",
        "calibration_samples": len(band.ratios),
        "unscaled": unscaled if math.isfinite(unscaled) else None,
        "powers": dict(zip(trust.kinds, powers, strict=True)),
    }
    if not any(powers):
        found["of_every_sample"] = found["unscaled"]
    if "mean_radius" in measured:
        found["mean"] = measured["mean_radius"]
    return found
