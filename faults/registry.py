"""The kinds of faults, by name, in the order of the table."""

from __future__ import annotations

from faults import flips, full_disk, hostile, races, settings, stops, targets
from faults.trials import Trials

KINDS: dict[str, Trials] = {
    "kills": stops.kills,
    "instants": stops.instants,
    "signals": stops.signals,
    "flips": flips.trials,
    "disk": full_disk.trials,
    "races": races.trials,
    "targets": targets.trials,
    "hostile": hostile.trials,
    "settings": settings.trials,
}
