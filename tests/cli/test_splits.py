"""Splits, test sets, ranks and other grids on the command line."""

import json

import numpy as np
import pytest

from tests.cli.outcome import refused
from twoscale.data import Dataset, generate
from twoscale.problems import Poisson
from twoscale.report.run_page import run_sections
from twoscale.report.run_record import read_run
from twoscale.run import Run

AFFINE = ("--method", "global", "--set", "predictor=affine")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another Poisson dataset on the same grid, and the same fields with an axis of channels."""
    folder = tmp_path_factory.mktemp("other")
    dataset = generate(Poisson(), folder / "d.zarr", resolution=16, samples=30, seed=9)
    arrays = {name: dataset.read(name, 0, 30)[:, None] for name in ("input", "output")}
    np.savez(folder / "f.npz", **arrays)
    return folder


def split_of(run):
    """Return the numbers of training, validation, test and calibration samples."""
    return [len(part) for part in json.loads((run / "split.json").read_text()).values()]


def test_shares_and_numbers(twoscale, data, tmp_path):
    for split, counts in (
        ("0.5/0.25/0.25", [60, 15, 30, 15]),
        ("30/20/10", [30, 10, 10, 10]),
    ):
        run = tmp_path / str(counts[0])
        assert twoscale("fit", data, "--split", split, *AFFINE, "--out", run).status == 0
        assert split_of(run) == counts
        assert json.loads((run / "config.json").read_text())["split"] == split
        metrics = json.loads(twoscale("evaluate", run, "--json").out)
        assert (metrics["measured_on"], metrics["samples"]) == ("test", counts[2])


def test_without_test_samples_the_validation_is_measured_and_said(twoscale, data, tmp_path):
    run = tmp_path / "r"
    outcome = twoscale("fit", data, "--split", "0.9/0.1/0", *AFFINE, "--out", run)
    assert "validation split of" in outcome.out
    assert "because there are no test samples" in outcome.out
    assert split_of(run) == [108, 12, 0, 0]
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["measured_on"], metrics["samples"]) == ("validation", 12)
    again = json.loads(twoscale("evaluate", run, "--json").out)
    assert again["mre"] == pytest.approx(metrics["mre"])
    assert "on the validation split of" in twoscale("evaluate", run).out


def test_all_of_it_is_training(twoscale, data, tmp_path):
    """Whoever chooses on validation samples gets a tenth; whoever does not, trains on all."""
    run = tmp_path / "r"
    outcome = twoscale("fit", data, "--split", "1/0/0", *AFFINE, "--out", run)
    assert "12 of the 120 training samples are held out to choose" in outcome.err
    assert split_of(run) == [108, 12, 0, 0]
    fixed = tmp_path / "fixed"
    outcome = twoscale(
        "fit", data, "--split", "1/0/0", *AFFINE, "--set", "ridge=1e-6", "--out", fixed
    )
    assert outcome.err == ""
    assert "training split of" in outcome.out
    assert split_of(fixed) == [120, 0, 0, 0]
    assert json.loads(twoscale("evaluate", fixed, "--json").out)["measured_on"] == "training"
    assert twoscale("check", fixed).status == 0


def test_a_test_set_of_its_own(twoscale, data, other, tmp_path):
    run, test = tmp_path / "r", other / "d.zarr"
    outcome = twoscale("fit", "--train", data, "--test", test, *AFFINE, "--out", run)
    assert f"test split of {test}" in outcome.out
    assert split_of(run) == [108, 12, 30, 0]
    opened = Run.open(run, device="cpu")
    assert opened.test_dataset.identity == Dataset(test).identity
    metrics = opened.evaluate()
    assert (metrics["measured_on"], metrics["samples"]) == ("test", 30)
    assert metrics["mre"] == pytest.approx(opened.metrics["mre"])
    assert opened.evaluate(Dataset(data))["measured_on"] == "validation"
    shown = read_run(opened)
    assert shown.judging_identity == shown.judging_dataset().identity == Dataset(test).identity
    assert ("Test data", f"d.zarr, {Dataset(test).identity}") in list(run_sections(shown))[-1].facts
    assert read_run(opened, Dataset(data), look=False).judging_identity == Dataset(data).identity
    tuned = tmp_path / "tuned"
    plan = ("--objective", "A3", "--epochs", 1, "--warm-up", 0, "--ramp", 0)
    assert twoscale("finetune", run, *plan, "--out", tuned).status == 0
    assert split_of(tuned) == [108, 12, 30, 0]
    assert Run.open(tuned, device="cpu").evaluate()["samples"] == 30


def test_wrong_pairs_of_datasets_are_refused(twoscale, data, other, tmp_path):
    test, out = ("--test", other / "d.zarr"), ("--out", tmp_path / "r")
    refused(twoscale("fit", *out), "on one dataset, got 0: name it as DATA or with --train")
    refused(twoscale("fit", data, "--train", data, *out), "on one dataset, got 2")
    shares = ("--split", "0.8/0.1/0.1")
    refused(twoscale("fit", data, *test, *shares, *AFFINE, *out), "must have none, such as 0.9")
    generate(Poisson(), tmp_path / "p12.zarr", resolution=12, samples=10)
    outcome = twoscale("fit", data, "--test", tmp_path / "p12.zarr", *AFFINE, *out)
    refused(outcome, "inputs of 16x16 fields", "of 12x12 fields", "must agree")
    assert {path.name for path in tmp_path.iterdir()} == {"p12.zarr"}


# Ranks


# Grids


def test_another_resolution(twoscale, run_folder, tmp_path):
    fine = generate(Poisson(), tmp_path / "p31.zarr", resolution=31, samples=10, seed=4)
    refused(twoscale("evaluate", run_folder, "--data", fine.path), "set resample")
    outcome = twoscale("evaluate", run_folder, "--data", fine.path, "--resample")
    assert "measured on 31x31 nodes: predictions on 16x16 nodes are interpolated" in outcome.out
    found = twoscale("evaluate", run_folder, "--data", fine.path, "--resample", "--json")
    metrics = json.loads(found.out)
    assert metrics["resampled_from"]["output"] == [31, 31]
    assert 0 < metrics["interpolation_mre"] < 0.05
    np.save(tmp_path / "x.npy", fine.read("input", 0, 2))
    out = tmp_path / "p.npy"
    refused(twoscale("predict", run_folder, tmp_path / "x.npy", "--out", out), "set resample")
    done = twoscale("predict", run_folder, tmp_path / "x.npy", "--resample", "--out", out)
    assert done.status == 0
    assert np.load(out).shape == (2, 31, 31)
