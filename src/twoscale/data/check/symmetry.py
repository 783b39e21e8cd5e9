"""Findings on symmetries: what inputs and outputs say for or against them."""

from __future__ import annotations

from collections.abc import Iterator

from twoscale.data.check.finding import Finding
from twoscale.data.store import Dataset
from twoscale.domain.space import Space
from twoscale.domain.symmetries import SYMMETRIES, symmetry_group
from twoscale.errors import TwoscaleError
from twoscale.predictors.symmetry_evidence import SymmetryEvidence

_TURNS = (
    "square",
    "rotations",
    "mirrors",
    "mirror-rows",
    "mirror-columns",
    "transpose",
    "half-turn",
)
"""From many images to few: the first that the data allow is reported."""


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
        return Finding(
            "ok",
            "symmetries",
            f"nothing in the data speaks against {SYMMETRIES[name]}, as the equation says",
        )
    return Finding(
        "warning",
        "symmetries",
        f"the equation is symmetric under {SYMMETRIES[name]}, but {against}",
        "fit with symmetries=none, or look for a mistake in the data",
    )


def _possible(evidence: SymmetryEvidence, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the first symmetry that the data allow, or that there is none of them."""
    finding = None
    for name in names:
        if not _applies(name, evidence.spaces):
            continue
        against = evidence.against(name)
        if not against:
            yield Finding(
                "note",
                "symmetries",
                f"nothing in the data speaks against {SYMMETRIES[name]}",
                f"if your equation is symmetric too, fit with symmetries={name}: every sample then "
                "counts as several",
            )
            return
        finding = Finding("ok", "symmetries", f"not symmetric under {SYMMETRIES[name]}: {against}")
    if finding is not None:
        yield finding


def _applies(name: str, spaces: tuple[Space, Space]) -> bool:
    """Say whether the grids have all symmetries of a name."""
    try:
        group = symmetry_group(name, *(space.grid for space in spaces))
    except TwoscaleError:
        return False
    return name == "shifts" or group == symmetry_group(name)
