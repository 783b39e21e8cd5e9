"""What a surrogate knows of its errors, as numbers that a page can apply."""

from __future__ import annotations

from typing import Any

from twoscale.explore.tensors import Packer
from twoscale.problems import Darcy, Poisson, Problem
from twoscale.surrogate import Surrogate
from twoscale.trust import NODES
from twoscale.trust.band import Band
from twoscale.trust.conformal import conformal_quantile, fewest_samples
from twoscale.trust.difficulty import DISAGREEMENT, members_of
from twoscale.trust.known_inputs import KnownInputs

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""The levels of radii that a page offers, if there are enough calibration samples."""


def describe_trust(surrogate: Surrogate, pack: Packer) -> dict[str, Any] | None:
    """Return the range of known inputs and the band; None if the surrogate has no trust."""
    trust = surrogate.trust_
    if trust is None:
        return None
    found: dict[str, Any] = {"known": _known(trust.known, pack), "band": None, "why": ""}
    if trust.band is None:
        found["why"] = "this surrogate is not calibrated, so there is no radius"
    elif DISAGREEMENT in trust.kinds and members_of(surrogate.operator_.latent) > 1:
        found["why"] = "the radius needs each network of the predictor, which the server computes"
    else:
        found["band"] = _band(trust.band, trust.kinds, pack)
    return found


def _known(known: KnownInputs, pack: Packer) -> dict[str, Any]:
    """Return the range of known inputs; its quantiles are too close for single precision."""
    names, scores = ("modes", "weights", "floor"), ("knots", "normals", "whitening", "shares")
    return {
        "unit": pack.single(known.unit.flatten()),
        "mean": pack.single(known.mean.flatten(1)),
        **{name: pack.single(getattr(known, name)) for name in names},
        "scores": {name: pack.double(getattr(known.scores, name)) for name in scores},
    }


def _band(band: Band, kinds: tuple[str, ...], pack: Packer) -> dict[str, Any]:
    """Return powers of the scores, the profile, and the widths of each level."""
    return {
        "kinds": list(kinds),
        "powers": [float(power) for power in band.powers],
        "profile": pack.half(band.profile.cpu().numpy()),
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


MOST_SIDE = 128
"""Nodes per side of the largest grid on which a page solves an equation."""
