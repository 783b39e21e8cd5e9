"""Findings on pairs of a known equation: do outputs solve it?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from twoscale.data.check.finding import Finding
from twoscale.data.description import SIDES
from twoscale.problems import Problem
from twoscale.runtime.memory import is_out_of_memory

_SOLUTION_TOLERANCE = 1e-4


def distance_to_solution(problem: Problem, arrays: Mapping[str, np.ndarray]) -> float:
    """Return the relative distance of a chunk's first output to a fresh solution."""
    inputs, outputs = (torch.from_numpy(arrays[name][:1]).double() for name in SIDES)
    if not (bool(torch.isfinite(inputs).all()) and bool(torch.isfinite(outputs).all())):
        return 0.0
    given = inputs[:, 0] if inputs.shape[1] == 1 else inputs
    try:
        solved = problem.solve(given)
    except (ValueError, RuntimeError, IndexError) as error:  # no solution for such an input
        if is_out_of_memory(error):
            raise
        return float("inf")
    if solved.numel() != outputs.numel():
        return float("inf")
    return float((solved.reshape(outputs.shape) - outputs).norm() / solved.norm())


def solution_finding(problem: Problem, distance: float) -> Finding:
    """Return whether the outputs of the spot checks solve the equation."""
    if distance > _SOLUTION_TOLERANCE:
        return Finding(
            "error",
            "solution",
            f"outputs do not solve {problem.name}: {distance:.0e} off",
            "import again without the problem, or with the right fields",
        )
    message = f"outputs solve {problem.name}: spot checks agree with fresh solutions"
    return Finding("ok", "solution", f"{message} to {distance:.0e}")
