import json

import numpy as np
import pytest

from tests.cli.outcome import refused

AT_ONCE = ("--epochs", 3, "--warm-up", 0, "--ramp", 1)  # every epoch trains the whole objective


@pytest.fixture(scope="module")
def other_run(data, tmp_path_factory):
    from twoscale.data import Dataset
    from twoscale.run import fit_run

    path = tmp_path_factory.mktemp("runs") / "fno"
    settings = {"epochs": 1, "width": 2, "modes": 2, "layers": 1}
    fit_run(Dataset(data), path, method="fno", settings=settings)
    return path


def test_finetune_writes_a_run_with_its_base(twoscale, run_folder, tmp_path):
    out = tmp_path / "tuned"
    arguments = ("--objective", "A3", *AT_ONCE, "--out", out)
    outcome = twoscale("finetune", run_folder, *arguments)
    assert outcome.status == 0, outcome.err
    assert "+ A3" in outcome.out
    config = json.loads((out / "config.json").read_text())
    base = json.loads((run_folder / "config.json").read_text())
    assert config["base"] == base["hash"] != config["hash"]
    assert set(config["finetuning"]["weights"]) == {"value", "normal_derivative"}
    history = json.loads((out / "history.json").read_text())["finetuning"]
    assert [len(values) for values in history["components"].values()] == [3, 3, 3]
    metrics = json.loads((out / "metrics.json").read_text())
    before = json.loads((run_folder / "metrics.json").read_text())
    assert metrics["timings"]["training"] == before["timings"]["training"]
    assert metrics["timings"]["finetuning"] > 0
    assert (out / "split.json").read_bytes() == (run_folder / "split.json").read_bytes()
    evaluated = json.loads(twoscale("evaluate", out, "--json").out)
    assert evaluated["mre"] == metrics["mre"]


def test_json(twoscale, run_folder, tmp_path):
    arguments = ("--objective", "A1", "--epochs", 1, "--out", tmp_path / "t", "--json")
    assert "mre" in json.loads(twoscale("finetune", run_folder, *arguments).out)


def test_not_a_pca_surrogate(twoscale, other_run, tmp_path):
    outcome = twoscale("finetune", other_run, "--out", tmp_path / "t")
    refused(outcome, "needs a PCA surrogate")
    assert list(tmp_path.iterdir()) == []


def test_unknown_objective(twoscale, run_folder, tmp_path):
    outcome = twoscale("finetune", run_folder, "--objective", "A6", "--out", tmp_path / "t")
    refused(outcome, "objective must be one of A1, A2, A3, A4, A5, flux", "A6")


def test_a_warm_up_that_never_ends(twoscale, run_folder, tmp_path):
    outcome = twoscale("finetune", run_folder, "--epochs", 5, "--out", tmp_path / "t")
    refused(outcome, "pass at least 6 epochs", "--warm-up")
    assert list(tmp_path.iterdir()) == []


def test_without_its_dataset(twoscale, run_folder, tmp_path):
    import shutil

    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    config = json.loads((copy / "config.json").read_text())
    config["dataset"]["path"] = str(tmp_path / "gone.zarr")
    (copy / "config.json").write_text(json.dumps(config))
    refused(twoscale("finetune", copy, "--out", tmp_path / "t"), "gone.zarr does not exist")


def test_dataset_on_another_grid(twoscale, run_folder, tmp_path):
    other = tmp_path / "o.zarr"
    made = ("--resolution", 24, "--samples", 20, "--out", other)
    assert twoscale("generate", "poisson", *made).status == 0
    outcome = twoscale("finetune", run_folder, "--data", other, "--out", tmp_path / "t")
    refused(outcome, "fitted on 16x16", "24x24")
    assert not list(tmp_path.glob("t*"))


def test_residual_without_a_known_problem(twoscale, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "f.npz", x=rng.random((60, 16, 16)), u=rng.random((60, 16, 16)))
    keys = ("--input", "x", "--output", "u", "--out", tmp_path / "d.zarr")
    assert twoscale("import", tmp_path / "f.npz", *keys).status == 0
    fitted = ("--method", "local", "--set", "epochs=1", "--out", tmp_path / "r")
    assert twoscale("fit", tmp_path / "d.zarr", *fitted).status == 0
    outcome = twoscale("finetune", tmp_path / "r", "--objective", "A5", "--out", tmp_path / "t")
    refused(outcome, "the residual objective needs a known problem")
