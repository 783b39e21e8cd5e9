"""The arguments of a surrogate, checked: its parts and settings, device, seed, periodic axes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from twoscale.domain.symmetries import SYMMETRIES
from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import assemble, names_of_parts, resolve, transformed
from twoscale.operators.spec import SurrogateSpec
from twoscale.parts import Part
from twoscale.problems import Problem, get_problem
from twoscale.representation import WholeField
from twoscale.runtime import processes

COMPOSED = "composed"
"""The method of a surrogate that has parts of the user's own choice."""

_ANY_RECIPE = "two-scale"  # where all parts are given: its own are not used

_SHARED = {"symmetries", "average_symmetries", "patches", "evaluation_batch"}
"""Settings that concern the whole surrogate; patches also those whose seams are measured."""


PLACES = ("inputs", "predictor", "outputs", "correction")
"""The arguments that may be parts."""


@dataclass(frozen=True)
class Resolved:
    """What the arguments of a surrogate stand for, under the names of its attributes."""

    method: str
    settings: dict[str, Any]
    parts: SurrogateSpec
    seed: int
    device: torch.device
    problem: Problem | None
    periodic: tuple[bool, bool]


def resolve_arguments(
    *,
    method: str,
    seed: Any,
    device: str | torch.device,
    problem: str | Problem | None,
    periodic: Any,
    **others: Any,
) -> Resolved:
    """Return what the arguments of `Surrogate` stand for; raise if one of them is wrong."""
    seed, place = resolve_seed(seed), resolve_device(device)
    known = get_problem(problem) if isinstance(problem, str) else problem
    if known is not None and not isinstance(known, Problem):
        raise TwoscaleError(f"the problem is a name or a Problem, got {problem!r}")
    wraps = resolve_periodic(periodic, known)
    given = {name: value for name, value in others.items() if name not in PLACES}
    own = {name: others[name] for name in PLACES if others.get(name) is not None}
    if isinstance(own.get("predictor"), str):
        given["predictor"] = own.pop("predictor")
    return Resolved(*compose(method, given, own, known), seed, place, known, wraps)


def equal_arguments(resolved: Any, device: str | torch.device) -> dict[str, Any]:
    """Return arguments of a surrogate that was loaded: they stand for its attributes."""
    given: dict[str, Any] = {
        "method": resolved.method,
        **dict.fromkeys(PLACES),
        "seed": resolved.seed,
        "device": device,
        "problem": resolved.problem,
        "periodic": resolved.periodic,
    }
    if resolved.method != COMPOSED:
        return given | resolved.settings
    parts = resolved.parts
    given |= {name: getattr(parts, name) for name in PLACES} | {"method": _ANY_RECIPE}
    given |= {"symmetries": parts.symmetries, "average_symmetries": parts.average_symmetries}
    return given | {k: v for k, v in resolved.settings.items() if k in _SHARED}


def compose(
    method: str, settings: Mapping[str, Any], own: Mapping[str, Part], problem: Problem | None
) -> tuple[str, dict[str, Any], SurrogateSpec]:
    """Return a method, its settings, and its recipe's parts, with `own` objects in place of some.

    Settings of parts that were replaced are left out; giving one raises.
    """
    resolved = resolve(method, settings)
    if resolved.get("symmetries") == "problem":
        resolved["symmetries"] = problem_symmetries(problem)
    parts = assemble(method, resolved)
    if not own:
        return method, resolved, parts
    places: dict[str, Any] = dict(own)
    if "inputs" not in own and getattr(own.get("predictor"), "reads_fields", False):
        places["inputs"] = transformed(WholeField(), resolved)
    composed = replace(parts, **places)
    used = names_of_parts(method, resolved, but=places)
    if "inputs" not in own:
        used.add("input_transform")
    if unused := settings.keys() - used - _SHARED:
        raise TwoscaleError(
            f"{', '.join(sorted(unused))} would have no effect: {', '.join(places)} is given as an "
            "object; set its own arguments instead"
        )
    shown = used | (_SHARED & settings.keys())
    kept = {name: value for name, value in resolved.items() if name in shown}
    return COMPOSED, kept, composed


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the device of a name; "auto" is a GPU where there is one.

    Each of several processes that train together has a GPU of its own.
    """
    name = str(device)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and processes.count() > 1:
        name = f"cuda:{processes.own_gpu()}"
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise TwoscaleError(f"the device is auto, cpu or cuda, got '{name}'")
    devices = torch.cuda.device_count() if kind == "cuda" else 1
    if int(number or 0) >= devices:
        raise TwoscaleError(f"there is no device {name} here: use the device cpu")
    return torch.device(name)


def shared_device(workers: object | None, device: str | torch.device) -> str:
    """Return the device of work that is shared with workers, if there are some.

    They use CPUs, so "auto" is the CPU then, and another device is refused.
    """
    name = str(device)
    if workers is None:
        return name
    if name not in ("auto", "cpu"):
        raise TwoscaleError(
            f"workers share work that is done on CPUs, not on {name}: use the device cpu"
        )
    return "cpu"


def declared_processes() -> int | None:
    """Return how many processes share the device, by TWOSCALE_PROCESSES; None if it is not set."""
    text = os.environ.get("TWOSCALE_PROCESSES")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 7 and int(text) > 0):
        raise TwoscaleError(
            f"TWOSCALE_PROCESSES is the number of processes on the device, got '{text}': "
            "set it to a whole number, or unset it"
        )
    return int(text)


def resolve_seed(seed: Any) -> int:
    """Return a seed, or raise."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**63:
        raise TwoscaleError(f"the seed must be a whole number from 0, got {seed!r}")
    return int(seed)


def resolve_periodic(periodic: Any, problem: Problem | None) -> tuple[bool, bool]:
    """Return whether rows and columns wrap: as the user says, or as the problem does."""
    if periodic is None:
        return (False, False) if problem is None else problem.periodic
    pair = (periodic, periodic) if isinstance(periodic, bool) else periodic
    whole = isinstance(pair, tuple | list) and len(pair) == 2
    if not whole or not all(isinstance(one, bool) for one in pair):
        raise TwoscaleError(
            f"periodic is true, false, or a pair of them for rows and columns, got {periodic!r}"
        )
    if problem is not None and tuple(pair) != problem.periodic:
        raise TwoscaleError(
            f"periodic={periodic!r} contradicts {problem.name}, whose rows and columns are "
            f"{problem.periodic}: leave one of the two out"
        )
    return pair[0], pair[1]


def problem_symmetries(problem: Problem | None) -> str:
    """Return the name of a problem's symmetries."""
    if problem is None:
        raise TwoscaleError(
            "symmetries=problem needs a known problem: name the symmetries of yours instead "
            f"({', '.join(SYMMETRIES)})"
        )
    return problem.symmetric_under
