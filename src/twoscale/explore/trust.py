"""What a surrogate knows of its errors, as numbers that a page can apply."""

from __future__ import annotations

from typing import Any

from twoscale.explore.tensors import ArrayPacker
from twoscale.problems import Darcy, Poisson, Problem
from twoscale.surrogate import Surrogate
from twoscale.trust import NODES
from twoscale.trust.band import Band
from twoscale.trust.difficulty import DISAGREEMENT, members_of
from twoscale.trust.input_range import InputRange
from twoscale.trust.statistics import conformal_quantile, fewest_samples

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""The levels of radii that a page offers, if there are enough calibration samples."""
MOST_SIDE = 128
"""Nodes per side of the largest grid on which a page solves an equation."""


def describe_trust(surrogate: Surrogate, pack: ArrayPacker) -> dict[str, Any] | None:
    """Return the range of known inputs and the band; None if the surrogate has no trust."""
    trust = surrogate.trust_
    if trust is None:
        return None
    band, why = None, ""
    if trust.band is None:
        why = "this surrogate is not calibrated, so there is no radius"
    elif DISAGREEMENT in trust.kinds and members_of(surrogate.operator_.code_operator) > 1:
        why = "the radius needs each network of the predictor, which the server computes"
    else:
        band = _band(trust.band, trust.kinds, pack)
    return {"known": _known(trust.known, pack), "band": band, "why": why}


def _known(known: InputRange, pack: ArrayPacker) -> dict[str, Any]:
    """Return the range of known inputs; its quantiles are too close for single precision."""
    scores = ("knots", "normals", "whitening", "shares")
    return {
        "unit": pack(known.unit.flatten()),
        "mean": pack(known.mean.flatten(1)),
        **pack.attributes(known, "modes", "weights", "floor"),
        "scores": pack.attributes(known.scores, *scores, use="double"),
    }


def _band(band: Band, kinds: tuple[str, ...], pack: ArrayPacker) -> dict[str, Any]:
    """Return powers of the scores, the profile, and the widths of each level."""
    return {
        "kinds": list(kinds),
        "powers": [float(power) for power in band.powers],
        "profile": pack(band.profile, "half"),
        "samples": len(band.ratios),
        "nodes": NODES,
        "levels": [
            {
                "level": level,
                "radius": conformal_quantile(band.ratios, level),
                "width": conformal_quantile(band.node_ratios, level),
            }
            for level in allowed_levels(band)
        ],
    }


def allowed_levels(band: Band) -> list[float]:
    """Return the levels for which there are enough calibration samples, in rising order."""
    return [level for level in LEVELS if len(band.ratios) >= fewest_samples(level)]


def solved_in_page(problem: Problem | None) -> dict[str, Any] | None:
    """Return the equation if pages can solve it, by name; None if they cannot."""
    if isinstance(problem, Poisson | Darcy):
        return {"name": problem.name, "most": MOST_SIDE}
    return None
