"""Answers to the questions of a served page: predictions in parts, truths and trust."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.explore.tensors import Packer, unpacked
from twoscale.explore.trust import allowed_levels
from twoscale.operators.operators import LatentOperator
from twoscale.representation import BlockPCA, Chain, Representation
from twoscale.surrogate import Surrogate
from twoscale.trust import LEVEL

_KINDS = ("f2", "f4", "f8")  # numbers that inputs may have
_WANTS = ("truth", "trust")
_FAR = 1e30  # stands for an infinite distance, which JSON has no word for


def checked_question(content: Any, runs: int) -> dict[str, Any]:
    """Return a request's content if all of its parts have the right types; see `answer`.

    runs: the number of runs of the page.
    """
    if not isinstance(content, dict):
        raise TwoscaleError("a request must be a JSON object")
    run = content.get("run")
    if not _is_whole(run) or not 0 <= run < runs:
        raise TwoscaleError(f"'run' must be a whole number from 0 to {runs - 1}")
    modes, level = content.get("modes"), content.get("level", LEVEL)
    if modes is not None and (not _is_whole(modes) or modes < 0):
        raise TwoscaleError("'modes' must be a whole number, or null for all")
    if not _is_number(level) or not 0 < level < 1:
        raise TwoscaleError("'level' must be a number between 0 and 1")
    parameters = content.get("parameters")
    parameters = [] if parameters is None else parameters
    if not isinstance(parameters, list) or not all(map(_is_number, parameters)):
        raise TwoscaleError("'parameters' must be a list of numbers")
    wants = content.get("wants", [])
    if not isinstance(wants, list) or any(one not in _WANTS for one in wants):
        raise TwoscaleError(f"'wants' must be a list of any of {', '.join(_WANTS)}")
    given = content.get("input")
    array = None if given is None else _array(given)
    return {
        "run": run,
        "modes": modes,
        "level": level,
        "parameters": parameters,
        "wants": wants,
        "input": array,
    }


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    single = float(np.finfo(np.float32).max)
    return (_is_whole(value) or isinstance(value, float)) and abs(value) <= single


def _array(given: Any) -> np.ndarray:
    """Return the array of a packed input in float32, or say what is wrong with it."""
    shape = given.get("shape") if isinstance(given, dict) else None
    if not isinstance(shape, list) or not all(_is_whole(one) and one > 0 for one in shape):
        raise TwoscaleError("'input' must have shape, type and data")
    if given.get("type") not in _KINDS or not isinstance(given.get("data"), str):
        raise TwoscaleError(f"'input' must have data in base 64 of a type of {', '.join(_KINDS)}")
    try:
        values = unpacked(given)
    except ValueError as error:
        raise TwoscaleError(f"the data of 'input' do not fit its shape: {error}") from error
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


@torch.no_grad()
def answer(surrogate: Surrogate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of the prediction that is asked for; truth and trust if wanted.

    asked: `input` (channels, height, width), or None; `parameters`; `modes`, the number of modes
    kept of each block, or None; `level` of the radius; `wants`, any of "truth" and "trust".
    """
    fields = _inputs(surrogate, asked)
    pack = Packer()
    wants = asked["wants"]
    found: dict[str, Any] = {
        "parts": [pack.single(one[0]) for one in field_parts(surrogate, fields, asked["modes"])]
    }
    problem = surrogate.problem
    if "truth" in wants and problem is not None and problem.solves(surrogate.output_space_.grid):
        found["truth"] = pack.single(problem.solve(fields[:, : problem.channels[0]])[0])
    band = None if surrogate.trust_ is None else surrogate.trust_.band
    levels = [] if band is None else allowed_levels(band)
    if "trust" in wants and levels:
        level = max((one for one in levels if one <= asked["level"]), default=levels[0])
        found["trust"] = _trust(surrogate, asked, level, pack)
    return found


def _inputs(surrogate: Surrogate, asked: Mapping[str, Any]) -> Tensor:
    """Return the asked input as a batch of one, with parameters among its channels."""
    space = surrogate.input_space_
    shape = (space.field_channels, *space.grid.shape)
    parts = []
    if space.field_channels:
        given = asked["input"]
        if given is None or given.shape != shape or not np.isfinite(given).all():
            raise TwoscaleError(f"finite input fields of shape {shape} were expected")
        parts.append(torch.from_numpy(given))
    scalars = asked["parameters"]
    if len(scalars) != space.parameters:
        raise TwoscaleError(f"{space.parameters} parameters were expected, got {len(scalars)}")
    parts += [torch.full((1, *space.grid.shape), float(one)) for one in scalars]
    return torch.cat(parts)[None]


def _trust(
    surrogate: Surrogate, asked: Mapping[str, Any], level: float, pack: Packer
) -> dict[str, Any]:
    """Return radius, distances and certificate of the whole prediction."""
    space = surrogate.input_space_
    given = asked["input"][None] if space.field_channels else None
    scalars = np.array([asked["parameters"]], float) if space.parameters else None
    seen = surrogate.assess(given, parameters=scalars, level=level)
    flags, proven = seen.flags, seen.certificate
    width = (np.asarray(seen.upper) - np.asarray(seen.lower)) / 2
    return {
        "radius": _finite(seen.radius[0]),
        "level": level,
        "distances": {
            name: np.nan_to_num(getattr(flags, name)[0], nan=_FAR, posinf=_FAR).tolist()
            for name in ("roughness", "code", "values")
        },
        "width": pack.half(width.reshape(surrogate.output_space_.shape)),
        "certificate": None
        if proven is None
        else {name: _finite(values[0]) for name, values in proven.as_dict().items()},
    }


def _finite(value: Any) -> float | None:
    """Return a number, or None for NaN and infinity: JSON has no words for them."""
    return float(value) if np.isfinite(value) else None


@torch.no_grad()
def field_parts(surrogate: Surrogate, fields: Tensor, modes: int | None = None) -> list[Tensor]:
    """Return the fields that each stage of the output adds to a prediction; they add up to it.

    A surrogate with a correction has a single part.
    """
    operator = surrogate.operator_
    if not isinstance(operator, LatentOperator):
        return [operator(fields)]
    outputs = operator.outputs
    stages: list[Any] = list(outputs.stages.values()) if isinstance(outputs, Chain) else [outputs]
    sizes = [stage.code_size for stage in stages]
    group = operator.group if operator.average else operator.group[:1]
    totals: list[Tensor] = []
    for symmetry in group:
        codes = operator.predictor(operator.inputs.encode(symmetry(fields)))
        pieces = [
            symmetry.inverse(stage.decode(_limited(stage, code, modes)))
            for stage, code in zip(stages, codes.split(sizes, 1), strict=True)
        ]
        totals = [a + b for a, b in zip(totals, pieces, strict=True)] if totals else pieces
    return [total / len(group) for total in totals]


def _limited(stage: Representation, codes: Tensor, modes: int | None) -> Tensor:
    """Return codes with zeros after the first modes of each block."""
    if modes is None or not isinstance(stage, BlockPCA):
        return codes
    (ranks,) = stage.ranks.values()
    numbers = torch.cat([torch.arange(rank) for rank in ranks])
    return torch.where(numbers < modes, codes, 0.0)
