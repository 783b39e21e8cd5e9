"""Made-up records of the study leaderboard."""

from __future__ import annotations

from typing import Any

from tests.lab.study.synthetic import ENVIRONMENT
from twoscale_lab.study.catalogue import load_study
from twoscale_lab.study.cells import Cell
from twoscale_lab.study.leaderboard.board import STUDY

_FACTORS = {
    "search": 0.5,
    "whole-field": 0.6,
    "kernel": 1.2,
    "affine": 3.0,
    "filter": 0.8,
    "fno": 0.9,
}


def board_record(only: str = "*", *, error: float = 0.01, scale: str = "paper") -> dict[str, Any]:
    """Return a record of the cases that a pattern names; `error` times a factor of the method."""
    cells = load_study(STUDY).at(scale).cells(only=[only])
    return {
        "format": 1,
        "study": STUDY,
        "scale": scale,
        "command": f"twoscale study run {STUDY}",
        "environments": [ENVIRONMENT],
        "cells": [_cell(cell, error) for cell in cells],
        "failed": [],
    }


def _cell(cell: Cell, error: float) -> dict[str, Any]:
    case = cell.case
    factor = _FACTORS[case.settings.get("predictor") or case.method]
    found = error * factor * (1 + 0.1 * cell.seed)
    metrics = {
        "mre": found,
        "mean_relative_l2": found,
        "median_relative_l1": 2 * found,
        "outside": {"mean_relative_l2": 3 * found, "median_relative_l1": 4 * found},
        "validation": {"mean_relative_l2": 0.9 * found, "median_relative_l1": 1.8 * found},
        "data_seconds": 7.0,
        "samples": 100,
        "timings": {"training": 4.0, "inference": 0.5, "total": 4.5},
    }
    searched = {"found": {"method": "global", "settings": {}, "trials": 9, "seconds": 90.0}}
    return {
        "case": case.id,
        "key": cell.key,
        "problem": case.problem,
        "resolution": case.resolution,
        "samples": case.samples,
        "training": cell.training,
        "method": case.method,
        "objective": None,
        "settings": dict(case.settings),
        "seed": cell.seed,
        "environment": 0,
        "metrics": metrics,
        **(searched if cell.searches else {}),
    }
