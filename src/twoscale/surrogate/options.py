"""What users say beside their fields, checked: device, seed, symmetries, periodic axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from twoscale.errors import TwoscaleError
from twoscale.fields.symmetries import SYMMETRIES
from twoscale.problems import Problem


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
    pair = (periodic, periodic) if isinstance(periodic, bool) else tuple(periodic)
    if len(pair) != 2 or not all(isinstance(one, bool) for one in pair):
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
