"""A search as it is stored in a run folder, and as the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from twoscale.runtime.texts import short_number
from twoscale.search.space import SearchSpace
from twoscale.search.trials import Search, Trial

HEADINGS = ("candidate", "why", "input", "codes", "oracle", "learned", "s")

MEASURE = "mean_relative_l2"
"""The metric that a search chooses by; its errors are of this kind."""

CAPTION = "Mean relative L2 errors of the validation fields in %"
"""What the errors under `HEADINGS` are."""


def as_record(found: Search, space: SearchSpace) -> dict[str, Any]:
    """Return all trials of a search and its choice, for JSON."""
    best = found.best
    return {
        "measure": MEASURE,
        "budget": found.budget,
        "seconds": found.seconds,
        "stopped": found.stopped,
        "half_error": found.half_error,
        "declared_symmetries": space.declared,
        "refused_symmetries": space.refused,
        "chosen": found.trials.index(best) if best else None,
        "trials": [_trial(trial, space) for trial in found.trials],
    }


def _trial(trial: Trial, space: SearchSpace) -> dict[str, Any]:
    outcome: dict[str, Any] = {}
    if trial.outcome is not None:
        outcome = asdict(trial.outcome) | {"shares": trial.outcome.shares}
        del outcome["tuned"]
    return {
        "label": trial.candidate.label,
        "method": trial.candidate.chain,
        "settings": space.settings(trial.candidate),
        "why": trial.reason,
        "expected_seconds": trial.expected,
        "seconds": trial.seconds,
        **outcome,
        "failure": trial.failure,
    }


def table_rows(record: Mapping[str, Any]) -> list[list[str]]:
    """Return a stored search as rows under `HEADINGS`; the chosen one is marked."""
    return [
        _row(trial, chosen=place == record["chosen"])
        for place, trial in enumerate(record["trials"])
    ]


def _row(trial: Mapping[str, Any], *, chosen: bool) -> list[str]:
    label = f"{'*' if chosen else ' '} {trial['label']}"
    seconds = f"{trial['seconds']:.1f}"
    if trial["failure"] is not None:
        return [label, trial["why"], "", "", "", "failed", seconds]
    return [
        label,
        trial["why"],
        str(trial["settings"].get("input_variance", "all")),
        f"{trial['input_code']}→{trial['output_code']}",
        *(short_number(100 * trial[name]) for name in ("oracle", "error")),
        seconds,
    ]
