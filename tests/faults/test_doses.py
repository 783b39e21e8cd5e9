"""A small dose of every kind of fault; `make faults` runs all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from faults.registry import KINDS

ROOT = Path(__file__).parents[2]
TRIALS = 4  # of each kind, of those that are quick


class Doses(NamedTuple):
    counts: dict[str, dict]
    lines: list[str]


@pytest.fixture(scope="module")
def doses(tmp_path_factory) -> Doses:
    """All doses, run at once in a process that is free of the threads of other tests."""
    record = tmp_path_factory.mktemp("doses") / "faults.json"
    command = [sys.executable, "-m", "faults", "--quick", "--dose", str(TRIALS), "--json", record]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    kinds = json.loads(record.read_text())["kinds"]
    return Doses({kind["name"]: kind for kind in kinds}, ended.stdout.splitlines())


@pytest.mark.parametrize("kind", KINDS)
def test_a_dose_of_each_kind_does_no_harm(doses, kind):
    counts = doses.counts[kind]
    if not counts["tried"]:
        pytest.skip("; ".join(line for line in doses.lines if line.startswith("not tried")))
    failures = [line for line in doses.lines if line.startswith(f"FAILED {kind} ")]
    assert counts["failed"] == 0, "\n".join(failures)
