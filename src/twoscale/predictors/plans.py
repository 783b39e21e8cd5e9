"""Plans of trainings from settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twoscale.training import Plan

Settings = Mapping[str, Any]


def plan_of(
    settings: Settings,
    prefix: str = "",
    *,
    evaluation_batch: int = 64,
    small: bool = False,
    tuned: bool = False,
) -> Plan:
    """Return the training that settings ask for, their names beginning with `prefix`."""
    return Plan(
        epochs=settings[f"{prefix}epochs"],
        batch_size=settings[f"{prefix}batch_size"],
        learning_rate=settings[f"{prefix}learning_rate"],
        weight_decay=settings[f"{prefix}weight_decay"],
        patience=settings.get(f"{prefix}patience", 1),
        early_stop=settings.get(f"{prefix}early_stop"),
        evaluation_batch=settings.get("evaluation_batch", evaluation_batch),
        small=small,
        on_fields=not small,
        tuned=tuned,
        one_cycle=f"{prefix}patience" not in settings,  # what has no plateaus to wait for
        clip=settings.get(f"{prefix}clip"),
        optimiser=settings.get(f"{prefix}optimiser", "adam"),
    )
