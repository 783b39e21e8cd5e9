"""What radii, flags, certificates and polishing reached, by the records in the repository."""

import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[3] / "results"
METHODS = {"two-scale", "two-scale affine", "two-scale encoder", "fno"}


def read(name):
    return json.loads((RESULTS / name).read_text())


@pytest.fixture(scope="module")
def trust():
    return read("trust.json")


def test_radii_are_measured_on_5000_fresh_fields_of_three_problems(trust):
    assert trust["size"]["fresh"] >= 5000
    rows = {(row["problem"], row["method"]) for row in trust["coverage"]}
    assert rows == {(p, m) for p in ("poisson", "darcy", "navier-stokes") for m in METHODS}


def test_radii_at_95_percent_hold_for_94_to_96_and_a_half(trust):
    for row in trust["coverage"]:
        assert 0.94 <= row["coverage"] <= 0.965


def test_on_darcy_scaled_radii_are_a_quarter_narrower_on_average(trust):
    narrower = [
        row["narrower_by"]
        for row in trust["coverage"]
        if row["problem"] == "darcy" and row["equation"]
    ]
    assert len(narrower) == len(METHODS)
    assert sum(narrower) / len(narrower) >= 0.25


def test_shifted_inputs_are_flagged_and_fresh_ones_are_not(trust):
    for shares in trust["flags"].values():
        assert shares["fresh"] <= 0.05
        assert len(shares) >= 5
        assert min(share for name, share in shares.items() if name != "fresh") >= 0.95


def test_no_certificate_is_violated():
    record = read("certificate.json")
    assert record["pairs"] >= 10_000
    assert record["violations"] == 0
    assert record["contrasts"]["3"]["mean_overestimate"] <= 1.6


def test_polished_predictions_of_darcy_256():
    record = read("polish.json")
    assert record["size"]["side"] == 256
    assert record["three_steps"]["prediction"]["mre"] <= 2e-4
    polished, solved = (record["to_tolerance"][start] for start in ("prediction", "zero"))
    assert record["tolerance"] == 1e-6
    assert max(one["largest_relative_error_upper"] for one in (polished, solved)) <= 1e-6
    assert polished["mean_steps"] < solved["mean_steps"]
    assert polished["milliseconds"] < solved["milliseconds"]
