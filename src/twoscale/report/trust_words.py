"""What metrics say in words: how far a run can be trusted, and whether it pays off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twoscale.runtime.texts import percent, short_duration_text
from twoscale.trust.break_even import FULL
from twoscale.trust.statistics import fewest_samples


def trust_text(metrics: Mapping[str, Any]) -> str:
    """Return how wide the radii are and how often they held; nothing of a run without trust."""
    trust = metrics.get("trust")
    if trust is None:
        return ""
    samples = metrics["samples"]
    known = _radius_text(trust, samples) if "coverage" in trust else _reason(trust)
    outside = round(trust["outside"] * samples)
    verb = "is" if outside == 1 else "are"
    return f"{known} {outside} of {samples} inputs {verb} unlike the training inputs."


def _radius_text(trust: Mapping[str, Any], samples: int) -> str:
    """Return the mean radius, how many samples kept theirs, and what it was calibrated on."""
    kept = round(trust["coverage"] * samples)
    return (
        f"Error radius at level {trust['level']:g}: {percent(trust['mean_radius'])} on average, "
        f"kept by {kept} of {samples} samples, calibrated on {trust['calibration_samples']}."
    )


def _reason(trust: Mapping[str, Any]) -> str:
    """Return why there are no radii, and what to do."""
    needed, found = fewest_samples(trust["level"]), trust["calibration_samples"]
    if found >= needed:
        return "No error radius: it needs the equation, which these samples do not name."
    return (
        f"No error radius: level {trust['level']:g} needs {needed} calibration samples, and there "
        f"are {found}. Give at least {2 * needed} samples for validation: half of them calibrate."
    )


def break_even_text(metrics: Mapping[str, Any]) -> str:
    """Return when a fit has paid off; nothing if its equation cannot be solved here."""
    found = metrics.get("break_even")
    if found is None:
        return ""
    ours, theirs = (
        short_duration_text(found[f"{name}_seconds"]) for name in ("prediction", "solver")
    )
    solver, error = found["solver"], percent(found["error"])
    verb = "take" if "steps" in solver else "takes"
    same = "" if solver == FULL else f" to the same median error ({error})"
    count = found["paid_off_after"]
    about = "about " if count and count > 99 else ""  # two digits are known
    pays = "never pays off"
    if count is not None:
        pays = f"has paid off after {about}{count:,} predictions"
    return (
        f"A prediction takes {ours}. {solver[0].upper()}{solver[1:]} {verb} {theirs}{same}. "
        f"The fit {pays}."
    )
