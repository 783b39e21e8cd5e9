"""Commands whose work is done elsewhere give the results of those that do it themselves."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

ADDRESS = ["--scheduler", "local:2"]


@pytest.fixture(autouse=True)
def same_cluster(workers, monkeypatch):
    """Let all commands use the workers that are there already."""

    @contextmanager
    def connected(where, **options):
        assert where == "local:2"
        yield workers

    monkeypatch.setattr("twoscale.cluster.connected", connected)


@pytest.fixture
def run(twoscale, without_pages, dataset, tmp_path):
    fit = ["--method", "two-scale", "--set", "epochs=2", "--set", "patches=2"]
    fit += ["--set", "coarse_components=4", "--device", "cpu", "--out", tmp_path / "run"]
    assert twoscale("fit", dataset.path, *fit, *ADDRESS).status == 0
    return tmp_path / "run"


def test_predictions_and_radii_are_the_same(twoscale, run, tmp_path):
    inputs = np.random.default_rng(0).standard_normal((2500, 16, 16)).astype("float32")
    np.save(tmp_path / "x.npy", inputs)
    for name, where in (("here", []), ("there", ADDRESS)):
        outcome = twoscale(
            "predict", run, tmp_path / "x.npy", "--out", tmp_path / f"{name}.npy", "--certify",
            "--device", "cpu", *where,
        )  # fmt: skip
        assert outcome.status == 0, outcome.err
    here, there = (np.load(tmp_path / f"{name}.npy") for name in ("here", "there"))
    np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-9)
    one, other = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("here", "there"))
    assert other.keys() == one.keys()
    np.testing.assert_allclose(other["energy_error_upper"], one["energy_error_upper"], rtol=1e-4)
    assert other["outside"] == one["outside"]


def test_errors_are_the_same(twoscale, run):
    here, there = (
        json.loads(twoscale("evaluate", run, "--json", "--device", "cpu", *where).out)
        for where in ([], ADDRESS)
    )
    assert there["mre"] == pytest.approx(here["mre"], rel=1e-6)


def test_another_text_is_refused(twoscale, run, tmp_path, monkeypatch):
    monkeypatch.undo()
    outcome = twoscale("evaluate", run, "--scheduler", "four")
    assert outcome.status == 2
    assert "local:4" in outcome.err
