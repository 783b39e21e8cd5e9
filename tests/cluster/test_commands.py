"""Commands whose work is done elsewhere give the results of those that do it themselves."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

from tests.lab.study.tiny import TEXT, finished, read_tiny, tiny_study
from twoscale_lab.study.runner import run_study

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


def test_the_cells_of_a_study_are_tasks(workers, tmp_path):
    here = run_study(tiny_study(), tmp_path / "here", device="cpu")
    there = run_study(tiny_study(), tmp_path / "there", device="cpu", workers=workers)
    assert not there.failed
    assert finished(read_tiny(tmp_path / "there")) == finished(here.record)
    for one, other in zip(here.record["cells"], there.record["cells"], strict=True):
        assert other["metrics"]["mre"] == pytest.approx(one["metrics"]["mre"], rel=1e-4)
    again = run_study(tiny_study(), tmp_path / "there", device="cpu", workers=workers)
    assert not again.plan.groups


def test_a_cell_that_fails_elsewhere_is_recorded(workers, tmp_path):
    study = tiny_study(TEXT.replace("local: {epochs: 2}", "local: {epochs: 2, patches: 40}"))
    outcome = run_study(study, tmp_path, device="cpu", seeds=[0], workers=workers)
    assert [entry["case"] for entry in outcome.failed] == ["poisson-16 local"]
    assert "patches" in outcome.failed[0]["error"]
