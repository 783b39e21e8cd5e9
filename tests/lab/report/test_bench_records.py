"""The committed benchmarks, held to what the project promises of its speed."""

import json
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "results" / "bench"

# Device, name of the result, (part of) the peer's name, least ratio.
PROMISED = [
    ("gpu", "pca poisson-128", "scikit-learn", 10),
    ("gpu", "pca poisson-256", "scikit-learn", 10),
    ("gpu", "train two-scale poisson-128, 1 seed", "DataLoader", 10),
    ("gpu", "train two-scale poisson-128, 5 seeds", "DataLoader", 50),
    ("gpu", "generate darcy-256", "sparse LU", 500),
    ("gpu", "inference poisson-256, batch 1024", "FNO", 20),
    ("gpu", "inference darcy-256, batch 1024", "FNO", 20),
    ("cpu", "pca poisson-128", "scikit-learn", 3),
    ("cpu", "train two-scale poisson-64, 1 seed", "DataLoader", 5),
    ("cpu", "train two-scale poisson-64, 5 seeds", "DataLoader", 5),
    ("cpu", "end-to-end two-scale poisson-64", "DataLoader", 5),
    ("cpu", "generate darcy-256", "sparse LU", 5),
]


def results(device):
    files = sorted((BENCH / device).glob("*.json"))
    return [result for path in files for result in json.loads(path.read_text())["results"]]


def find(device, name, peer=""):
    (found,) = (r for r in results(device) if r["name"] == name and peer in r["peer"])
    return found


@pytest.mark.parametrize(("device", "name", "peer", "least"), PROMISED)
def test_ratios_are_what_is_promised(device, name, peer, least):
    assert find(device, name, peer)["ratio"] >= least


@pytest.mark.parametrize(("device", "size"), [("gpu", 128), ("gpu", 256), ("cpu", 128)])
def test_pca_has_its_peers_oracle(device, size):
    agreement = find(device, f"pca poisson-{size}")["agreement"]
    assert agreement["oracle"] == pytest.approx(agreement["peer_oracle"], rel=1e-3)


def test_training_reaches_its_peers_error_within_the_spread_over_seeds():
    agreement = find("gpu", "train two-scale poisson-128, 5 seeds")["agreement"]
    apart = abs(agreement["validation_mre"] - agreement["peer_validation_mre"])
    assert apart <= agreement["spread_over_seeds"]


def test_ten_thousand_darcy_samples_are_written_in_fifteen_seconds():
    details = find("gpu", "generate darcy-256")["details"]
    assert details["samples"] == 10000
    assert details["dataset_seconds"] < 15


def test_a_fit_four_times_its_memory_stays_within_it():
    details = find("cpu", "memory fit poisson-128")["details"]
    assert details["dataset_over_allowance"] >= 4
    assert details["within"]


def test_scaling_was_measured_up_to_1024():
    stages = [result for result in results("gpu") if result["name"].startswith("scaling")]
    assert {result["name"].split()[1] for result in stages} == {
        "generate",
        "pca",
        "train",
        "finetune",
        "predict",
    }
    for stage in stages:
        assert set(stage["details"]["seconds"]) == {"64", "128", "256", "512", "1024"}
