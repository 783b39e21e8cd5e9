import json
import shutil

import numpy as np
import pytest

from tests.cli.outcome import contents, refused
from tests.surrogate.tiny import TINY
from twoscale.cli.finetune import finetune
from twoscale.data import Dataset, generate
from twoscale.problems import Darcy
from twoscale.run import Run, finetune_run, fit_run

AT_ONCE = ("--epochs", 3, "--warm-up", 0, "--ramp", 1)  # every epoch trains the whole objective


def read(run, name):
    return json.loads((run / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def other_data(tmp_path_factory):
    """A small Darcy dataset on the grid of `data`."""
    path = tmp_path_factory.mktemp("data") / "d16.zarr"
    generate(Darcy(), path, resolution=16, samples=60, seed=1)
    return path


@pytest.fixture
def unknown_data(twoscale, tmp_path):
    """An imported dataset on the grid of `data`, of no known problem."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "f.npz", x=rng.random((60, 16, 16)), u=rng.random((60, 16, 16)))
    keys = ("--input", "x", "--output", "u", "--out", tmp_path / "d.zarr")
    assert twoscale("import", tmp_path / "f.npz", *keys).status == 0
    return tmp_path / "d.zarr"


def test_finetune_writes_a_run_with_its_base(twoscale, run_folder, tmp_path):
    out = tmp_path / "tuned"
    arguments = ("--objective", "A3", *AT_ONCE, "--out", out)
    outcome = twoscale("finetune", run_folder, *arguments)
    assert outcome.status == 0, outcome.err
    assert "+ A3" in outcome.out
    config = read(out, "config")
    base = read(run_folder, "config")
    assert config["base"] == base["hash"] != config["hash"]
    assert set(config["finetuning"]["weights"]) == {"value", "normal_derivative"}
    history = read(out, "history")["finetuning"]
    assert [len(values) for values in history["components"].values()] == [3, 3, 3]
    metrics = read(out, "metrics")
    before = read(run_folder, "metrics")
    assert metrics["timings"]["training"] == before["timings"]["training"]
    assert metrics["timings"]["finetuning"] > 0
    assert (out / "split.json").read_bytes() == (run_folder / "split.json").read_bytes()
    evaluated = json.loads(twoscale("evaluate", out, "--json").out)
    assert evaluated["mre"] == metrics["mre"]


@pytest.mark.parametrize("method", ["fno", "refinement"])
def test_not_a_pca_surrogate(twoscale, data, tmp_path, monkeypatch, method):
    fit_run(Dataset(data), tmp_path / "r", method=method, settings=TINY[method])
    monkeypatch.setattr(Dataset, "read", None)  # told before any field is read
    refused(
        twoscale("finetune", tmp_path / "r", "--out", tmp_path / "t"),
        "needs a surrogate with a compressed output code",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize("place", ["a", "a/../a", "."])
def test_a_run_is_not_replaced_by_its_own_fine_tuning(twoscale, run_folder, tmp_path, place):
    shutil.copytree(run_folder, tmp_path / "a")
    before = contents(tmp_path)
    outcome = twoscale("finetune", tmp_path / "a", "--out", tmp_path / place, "--overwrite")
    refused(outcome, "holds the run that is fine-tuned", "choose another path")
    assert contents(tmp_path) == before


def test_the_hash_is_of_the_plan_and_not_of_the_weights(run_folder, tmp_path, monkeypatch):
    base = Run.open(run_folder, device="cpu")
    plan = {"epochs": 1, "warm_up": 0}
    one = finetune_run(base, tmp_path / "1", **plan).config
    monkeypatch.setattr("twoscale.finetuning.finetune._CALIBRATION_FIELDS", 4)
    two = finetune_run(base, tmp_path / "2", **plan).config
    other = finetune_run(base, tmp_path / "3", **plan, ramp=3).config
    assert one["finetuning"]["weights"] != two["finetuning"]["weights"]
    assert one["hash"] == two["hash"] != other["hash"]


# Another dataset


def test_another_dataset(done, twoscale, run_folder, other_data, tmp_path):
    out = tmp_path / "t"
    arguments = ("--data", other_data, "--objective", "flux", *AT_ONCE, "--out", out)
    done("finetune", run_folder, *arguments)
    config, manifest, metrics = (read(out, name) for name in ("config", "manifest", "metrics"))
    assert config["dataset"]["problem"] == manifest["problem"]
    assert manifest["problem"]["name"] == "darcy"
    assert config["training_samples"] == manifest["training_samples"] == 48
    assert metrics["samples"] == 6
    assert metrics["flux_trace_error"] > 0
    assert json.loads(twoscale("evaluate", out, "--json").out)["mre"] == metrics["mre"]


def test_both_rows_are_of_the_other_dataset(run_folder, other_data, tmp_path, monkeypatch):
    shown = {}
    shows = "twoscale.cli.display.print_metrics"
    monkeypatch.setattr(shows, lambda rows, title: shown.update(rows))
    finetune(run_folder, tmp_path / "t", "A1", epochs=1, data=other_data)
    before, after = shown["two-scale"], shown["+ A1"]
    assert before["samples"] == after["samples"] == 6
    assert before["oracle_mre"] == after["oracle_mre"]
    assert "flux_trace_error" in before
    assert before["mre"] > after["mre"]


def test_a_moved_dataset_keeps_the_split(twoscale, data, tmp_path):
    base, out, moved = tmp_path / "r", tmp_path / "t", tmp_path / "moved.zarr"
    fit_run(Dataset(data), base, method="local", settings=TINY["local"], training_samples=50)
    shutil.copytree(data, moved)
    assert twoscale("finetune", base, "--data", moved, *AT_ONCE, "--out", out).status == 0
    assert read(out, "split") == read(base, "split")
    assert read(out, "manifest")["training_samples"] == 50
    assert read(out, "config")["dataset"]["path"] == str(moved.resolve())


def test_a_dataset_of_an_unknown_problem(twoscale, run_folder, unknown_data, tmp_path):
    arguments = ("--data", unknown_data, *AT_ONCE, "--out", tmp_path / "t")
    outcome = twoscale("finetune", run_folder, "--objective", "A5", *arguments)
    refused(outcome, "the residual objective needs a known problem")
    assert twoscale("finetune", run_folder, "--objective", "A4", *arguments).status == 0
    assert read(tmp_path / "t", "metrics")["residual_rms"] is None
    assert read(tmp_path / "t", "manifest")["problem"] is None
