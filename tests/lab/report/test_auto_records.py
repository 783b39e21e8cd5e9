"""What a fit without a method reached on two cores, by the records in the repository."""

from pathlib import Path

import pytest

from twoscale.files import read_json

FOLDER = Path(__file__).parents[3] / "results" / "auto"


CASES = [("poisson", 2000, 1e-6), ("darcy", 2000, 0.0076), ("navier-stokes", 1250, 0.01)]


@pytest.mark.parametrize(("problem", "samples", "most"), CASES)
def test_a_minute_is_enough(problem, samples, most):
    (run,) = read_json(FOLDER / f"{problem}-64-cpu.json")["runs"]
    search, dataset = run["search"], run["config"]["dataset"]
    assert dataset["samples"] == samples
    assert run["metrics"]["mre"] < most
    assert run["metrics"]["mean_relative_l2"] < most
    assert search["budget"] == 60
    assert search["seconds"] <= 60
    assert run["environment"]["device"] == "cpu"
    assert run["environment"]["threads"] == 2
    errors = [trial["error"] for trial in search["trials"]]
    assert errors[search["chosen"]] == min(errors)
    assert len(search["explanation"]) >= 2


def test_six_minutes_are_enough_for_an_encoder():
    (run,) = read_json(FOLDER / "darcy-64-cpu-6min.json")["runs"]
    assert run["config"]["settings"]["predictor"] == "encoder"
    assert run["metrics"]["mre"] < 0.003
    assert run["search"]["seconds"] <= 360
    assert run["environment"]["device"] == "cpu"
