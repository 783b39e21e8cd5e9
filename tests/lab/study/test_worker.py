"""Cells that run on a machine with few packages, from a plan to a merged record."""

import json
import subprocess
import sys

import pytest

from tests.lab.study.test_benchmarks import TEXT, study
from tests.lab.study.tiny import tiny_study
from twoscale.errors import TwoscaleError
from twoscale.files import plain_json
from twoscale_lab.study.folder import read_record
from twoscale_lab.study.quantities import quantity
from twoscale_lab.study.runner import run_study
from twoscale_lab.study.worker import planned, read_cell, run_plan

BLOCKED = """
import sys
for name in "zarr pydantic typer rich yaml h5py xarray dask matplotlib jinja2".split():
    sys.modules[name] = None
from twoscale_lab.study.worker import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def plan(tmp_path):
    """The plan of a study with a search and an affine map."""
    file = tmp_path / "plan.json"
    cells = [planned(cell) for cell in study().cells()]
    content = {"study": "tests", "scale": "paper", "command": "", "cells": cells}
    file.write_text(json.dumps(plain_json(content)))
    return file


def test_a_cell_survives_its_plan():
    for cell in study().cells():
        assert read_cell(json.loads(json.dumps(plain_json(planned(cell))))) == cell
    changed = planned(study().cells()[0]) | {"seed": 5}
    with pytest.raises(TwoscaleError, match="plan and run with one version"):
        read_cell(changed)
    with pytest.raises(TwoscaleError, match="a plan holds fits and searches only"):
        planned(tiny_study().cells()[-1])


def test_a_worker_measures_what_a_study_measures(plan, tmp_path):
    record = run_plan(plan, tmp_path / "part", only=["*predictor=affine*"], device="cpu")
    (cell,) = record["cells"]
    other = run_study(study(), tmp_path / "here", device="cpu", only=["global"]).record["cells"]
    for name in ("mean_relative_l2", "outside.mean_relative_l2", "oracle_mre"):
        assert quantity(cell, name) == pytest.approx(quantity(other[0], name), rel=1e-6)
    assert cell["key"] == other[0]["key"]
    assert quantity(cell, "data_seconds") > 0
    assert read_record(tmp_path / "part" / "tests.json")["cells"] == record["cells"]


def test_a_worker_needs_few_packages_and_goes_on_where_it_stopped(plan, tmp_path):
    command = [sys.executable, "-c", BLOCKED, plan, "--out", tmp_path / "part", "--device", "cpu"]
    first = subprocess.run(
        [*command, "--only", "*global*"], capture_output=True, text=True, check=False
    )
    assert first.returncode == 0, first.stderr
    assert "cno-poisson-12 global" in first.stdout
    record = run_plan(plan, tmp_path / "part", device="cpu")
    assert [cell["method"] for cell in record["cells"]] == ["search", "global"]
    again = run_plan(plan, tmp_path / "part", device="cpu")
    assert again["cells"] == record["cells"]


def test_a_cell_that_fails_is_recorded(tmp_path):
    bad = study(TEXT.replace("training: 30}", "training: 2}")).cells()[:1]
    file = tmp_path / "plan.json"
    content = {"study": "tests", "scale": "paper", "command": ""}
    file.write_text(json.dumps(plain_json(content | {"cells": [planned(one) for one in bad]})))
    record = run_plan(file, tmp_path / "part", device="cpu")
    assert record["cells"] == []
    assert [entry["case"] for entry in record["failed"]] == ["cno-poisson-12 search"]
