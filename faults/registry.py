"""The kinds of faults, by name, in the order of the table."""

from __future__ import annotations

from faults import flips, full_disk, hostile, instants, kills, races, settings, signals, targets
from faults.trials import Trials

KINDS: dict[str, Trials] = {
    "kills": kills.trials,
    "instants": instants.trials,
    "signals": signals.trials,
    "flips": flips.trials,
    "disk": full_disk.trials,
    "races": races.trials,
    "targets": targets.trials,
    "hostile": hostile.trials,
    "settings": settings.trials,
}
