"""A study that runs in a second or two, and helpers to look at what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

from twoscale_lab.study.catalogue import parse_study
from twoscale_lab.study.definition import Study

TEXT = """
title: Tiny
question: Does the machinery work?
seeds: [0, 1]
resolution: 16
samples: 100
protocol:
  settings:
    local: {epochs: 2}
    two-scale: {epochs: 2, coarse_components: 3}
  finetuning: {epochs: 2, warm_up: 0, ramp: 1}
cases:
  - {method: local}
  - {method: two-scale, objective: [null, A1]}
small:
  resolution: {16: 8}
  samples: 50
  seeds: [0]
tables: [{name: all, title: All, columns: [mre]}]
figures: [{kind: qualitative, place: poisson-16}]
"""

CASES = ["poisson-16 local", "poisson-16 two-scale", "poisson-16 two-scale+A1"]


def tiny_study(text: str = TEXT) -> Study:
    return parse_study(text, name="tiny")


def read_tiny(out: Path) -> dict:
    """Return the record of the tiny study in a folder."""
    return json.loads((out / "records" / "tiny.json").read_text())


def finished(record: dict) -> list[tuple[str, int]]:
    """Return the cases and seeds that a record holds."""
    return [(cell["case"], cell["seed"]) for cell in record["cells"]]
