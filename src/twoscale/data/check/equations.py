"""Findings on the equation: do outputs solve it, and which symmetries do the data allow?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch

from twoscale.data.check.finding import Finding
from twoscale.data.description import SIDES
from twoscale.data.store import Dataset
from twoscale.domain.space import Space
from twoscale.domain.symmetries import SYMMETRIES, symmetry_group
from twoscale.errors import TwoscaleError
from twoscale.predictors.symmetry_evidence import SymmetryEvidence
from twoscale.problems import Problem
from twoscale.runtime.memory import is_out_of_memory

_SOLUTION_TOLERANCE = 1e-4
_TURNS = (
    *("square", "rotations", "mirrors", "mirror-rows"),
    *("mirror-columns", "transpose", "half-turn"),
)
"""From many images to few: the first that the data allow is reported."""


def distance_to_solution(problem: Problem, arrays: Mapping[str, np.ndarray]) -> float:
    """Return the relative distance of a chunk's first output to a fresh solution."""
    inputs, outputs = (torch.from_numpy(arrays[name][:1]).double() for name in SIDES)
    if not (bool(torch.isfinite(inputs).all()) and bool(torch.isfinite(outputs).all())):
        return 0.0
    try:
        solved = problem.solve(inputs[:, 0] if inputs.shape[1] == 1 else inputs)
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
        seen = f"outputs do not solve {problem.name}: {distance:.0e} off"
        advice = "import again without the problem, or with the right fields"
        return Finding("error", "solution", seen, advice)
    seen = f"outputs solve {problem.name}: spot checks agree with fresh solutions to {distance:.0e}"
    return Finding("ok", "solution", seen)


def symmetry_findings(dataset: Dataset) -> Iterator[Finding]:
    """Yield whether the data allow turns, mirrorings and shifts, or speak against them.

    What a known equation declares is tested. Others are suggested for unknown equations only.
    """
    if "input" not in dataset.arrays:
        return
    every = range(dataset.samples)
    pairs = (dataset.fields("input", every), dataset.fields("output", every))
    evidence = SymmetryEvidence(pairs, (dataset.input_space, dataset.output_space))
    if not evidence.enough:
        return
    if dataset.problem is None:
        for names in (_TURNS, ("shifts",)):
            yield from _possible(evidence, names)
    elif dataset.problem.symmetric_under != "none":
        yield _declared(evidence, dataset.problem.symmetric_under)


def _declared(evidence: SymmetryEvidence, name: str) -> Finding:
    """Return whether the data allow the symmetries of their equation."""
    against = evidence.against(name)
    if not against:
        seen = f"nothing in the data speaks against {SYMMETRIES[name]}, as the equation says"
        return Finding("ok", "symmetries", seen)
    seen = f"the equation is symmetric under {SYMMETRIES[name]}, but {against}"
    advice = "fit with symmetries=none, or look for a mistake in the data"
    return Finding("warning", "symmetries", seen, advice)


def _possible(evidence: SymmetryEvidence, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the first symmetry that the data allow, or that there is none of them."""
    refuted = ""
    for name in names:
        if not _applies(name, evidence.spaces):
            continue
        against = evidence.against(name)
        if not against:
            seen = f"nothing in the data speaks against {SYMMETRIES[name]}"
            fit = f"if your equation is symmetric too, fit with symmetries={name}"
            yield Finding("note", "symmetries", seen, f"{fit}: every sample then counts as several")
            return
        refuted = f"not symmetric under {SYMMETRIES[name]}: {against}"
    if refuted:
        yield Finding("ok", "symmetries", refuted)


def _applies(name: str, spaces: tuple[Space, Space]) -> bool:
    """Say whether the grids have all symmetries of a name."""
    try:
        group = symmetry_group(name, *(space.grid for space in spaces))
    except TwoscaleError:
        return False
    return name == "shifts" or group == symmetry_group(name)
