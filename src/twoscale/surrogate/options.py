"""What users say of a surrogate, checked: its parts and settings, device, seed, periodic axes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from twoscale.errors import TwoscaleError
from twoscale.fields.symmetries import SYMMETRIES
from twoscale.methods.recipes import assemble, resolve
from twoscale.operators.assembly import Assembly
from twoscale.parts import Part
from twoscale.problems import Problem
from twoscale.representation import WholeField

_SHARED = {"symmetries", "average_symmetries", "patches", "evaluation_batch", "base"}
"""Settings that concern more than one part."""


class Composed(NamedTuple):
    """A method, its settings, and the parts: those of its recipe, or the user's."""

    method: str
    settings: dict[str, Any]
    parts: Assembly


def compose(
    method: str, settings: Mapping[str, Any], own: Mapping[str, Part], problem: Problem | None
) -> Composed:
    """Return the parts of a method's recipe, with `own` objects in place of some."""
    resolved = resolve(method, settings)
    if resolved.get("symmetries") == "problem":
        resolved["symmetries"] = problem_symmetries(problem)
    parts = assemble(method, resolved)
    if not own:
        return Composed(method, resolved, parts)
    places: dict[str, Any] = dict(own)
    predictor = own.get("predictor")
    if "inputs" not in own and getattr(predictor, "reads_fields", False):
        places["inputs"] = WholeField()
    composed = replace(parts, **places)
    _check_effect(method, settings, places)
    return Composed(method, resolved, composed)


def _check_effect(method: str, settings: Mapping[str, Any], places: Mapping[str, Part]) -> None:
    """Raise if a setting changes nothing but parts that objects have replaced."""
    for name in settings.keys() - _SHARED:
        without = {key: value for key, value in settings.items() if key != name}
        two = [assemble(method, resolve(method, given)) for given in (settings, without)]
        trees = [
            {key: part for key, part in one.describe().items() if key not in places} for one in two
        ]
        if trees[0] == trees[1] and two[0].describe() != two[1].describe():
            raise TwoscaleError(
                f"{name} has no effect here: {', '.join(places)} is given as an object; set its "
                "own arguments instead"
            )


def resolve_device(name: str) -> torch.device:
    """Return the device called `name`; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise TwoscaleError(f"the device is auto, cpu or cuda, got '{name}'")
    devices = torch.cuda.device_count() if kind == "cuda" else 1
    if int(number or 0) >= devices:
        raise TwoscaleError(f"there is no device {name} here: use --device cpu or auto")
    return torch.device(name)


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
    return pair[0], pair[1]


def problem_symmetries(problem: Problem | None) -> str:
    """Return the name of a problem's symmetries."""
    if problem is None:
        raise TwoscaleError(
            "symmetries=problem needs a known problem: name the symmetries of yours instead "
            f"({', '.join(SYMMETRIES)})"
        )
    return problem.symmetric_under
