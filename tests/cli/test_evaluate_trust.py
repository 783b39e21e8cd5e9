"""What `evaluate` says of trust and of the solver."""

import json


def test_the_table_is_followed_by_trust_and_break_even(twoscale, run_folder):
    outcome = twoscale("evaluate", run_folder)
    said = " ".join(outcome.out.split())
    assert "No error radius: level 0.95 needs 19 calibration samples, and there are 0." in said
    assert "of 12 inputs" in said
    assert "A prediction takes" in said
    assert "The fit" in said


def test_the_same_as_json_and_quietly(twoscale, run_folder):
    found = json.loads(twoscale("evaluate", run_folder, "--json").out)
    assert found["trust"]["calibration_samples"] == 0
    compared = found["break_even"]
    assert compared["prediction_seconds"] > 0
    assert compared["solver_seconds"] > 0
    assert compared["error"] > 0
    assert twoscale("evaluate", run_folder, "--quiet").out == ""


def test_other_grids_have_no_break_even(twoscale, run_folder, tmp_path):
    twoscale("generate", "poisson", "--resolution", 20, "--samples", 5, "--out", tmp_path / "d")
    outcome = twoscale("evaluate", run_folder, "--data", tmp_path / "d", "--resample", "--json")
    assert "break_even" not in json.loads(outcome.out)
