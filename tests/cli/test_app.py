import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.cli.conftest import BATCH_VALUES, CHUNK_BYTES
from tests.cli.outcome import contents, refused
from tests.surrogate.tiny import RECORD
from twoscale import Surrogate, __version__
from twoscale.data import Dataset
from twoscale.run import Run

IN_SMALL_CHUNKS = f"""
from twoscale.cli import main
from twoscale.data import description, generation
description._CHUNK_BYTES = {CHUNK_BYTES}
generation._BATCH_VALUES["cpu"] = {BATCH_VALUES}
main()
"""


def test_version(twoscale):
    assert twoscale("--version") == (0, f"twoscale {__version__}\n", "")


@pytest.mark.parametrize(
    "command",
    ["demo", "generate", "import", "check", "fit", "evaluate", "predict", "explore", "serve"],
)
def test_help_has_an_example(twoscale, command):
    outcome = twoscale(command, "--help")
    assert outcome.status == 0
    assert f"twoscale {command}" in " ".join(outcome.out.split())
    assert "Example" in outcome.out


def test_from_generate_to_predict(twoscale, tmp_path):
    data, run, out = tmp_path / "d.zarr", tmp_path / "runs" / "a", tmp_path / "p.npy"
    made = twoscale("generate", "poisson", "--resolution", 16, "--samples", 120, "--out", data)
    assert made.status == 0
    assert "120 pairs of 16x16" in made.out
    checked = twoscale("check", data)
    assert checked.status == 0
    assert "no field occurs twice" in checked.out
    fitted = twoscale("fit", data, "--method", "local", "--set", "epochs=3", "--out", run)
    assert fitted.status == 0
    assert "MRE %" in fitted.out
    evaluated = twoscale("evaluate", run, "--json")
    metrics = json.loads(evaluated.out)
    assert metrics["mre"] == json.loads((run / "metrics.json").read_text())["mre"]
    assert set(metrics) >= RECORD
    inputs = Dataset(data).read("input", 0, 5)
    np.save(tmp_path / "x.npy", inputs)
    assert twoscale("predict", run, tmp_path / "x.npy", "--out", out).status == 0
    assert np.array_equal(np.load(out), Surrogate.load(run).predict(inputs))


def test_a_run_folder_holds_what_is_needed_to_trust_it(twoscale, data, tmp_path):
    run = tmp_path / "r"
    named = ("--method", "two-scale", "--set", "epochs=2")
    assert twoscale("fit", data, *named, "--seed", 3, "--out", run).status == 0
    files = {path.name for path in run.iterdir()}
    assert files == {
        "manifest.json",
        "weights.safetensors",
        "SHA256SUMS",
        "config.json",
        "split.json",
        "history.json",
        "metrics.json",
        "environment.json",
        "report.html",
    }
    config = json.loads((run / "config.json").read_text())
    assert config["seed"] == 3
    assert config["settings"]["epochs"] == 2
    assert config["dataset"]["identity"] == Dataset(data).identity
    assert Run.open(run).identity == Dataset(data).identity
    assert len(json.loads((run / "history.json").read_text())["training"]["training_loss"]) == 2
    split = json.loads((run / "split.json").read_text())
    assert [len(part) for part in split.values()] == [96, 12, 12, 0]
    assert list(tmp_path.iterdir()) == [run]


def test_same_seed_same_run(twoscale, data, tmp_path):
    for name in ("a", "b"):
        arguments = ("--method", "overlap", "--set", "epochs=2", "--out", tmp_path / name)
        assert twoscale("fit", data, *arguments).status == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("a", "b")]
    configs = [(tmp_path / name / "config.json").read_bytes() for name in ("a", "b")]
    assert weights[0] == weights[1]
    assert configs[0] == configs[1]


def test_training_prefix(twoscale, data, tmp_path):
    named = ("--method", "two-scale", "--set", "epochs=1")
    outcome = twoscale("fit", data, *named, "--train-samples", 40, "--out", tmp_path / "r")
    assert outcome.status == 0
    split = json.loads((tmp_path / "r" / "split.json").read_text())
    assert [len(part) for part in split.values()] == [40, 12, 12, 0]


def test_evaluate_on_other_data_uses_all_of_it(twoscale, run_folder, tmp_path):
    other = tmp_path / "o.zarr"
    made = ("--resolution", 16, "--samples", 30, "--seed", 9, "--out", other)
    assert twoscale("generate", "poisson", *made).status == 0
    metrics = json.loads(twoscale("evaluate", run_folder, "--data", other, "--json").out)
    assert metrics["samples"] == 30


def test_evaluate_prints_the_error_of_each_sample(twoscale, run_folder):
    metrics = json.loads(twoscale("evaluate", run_folder, "--json", "--per-sample").out)
    errors = metrics["per_sample"]["error"]
    assert len(errors) == metrics["samples"]
    assert metrics["mean_relative_l2"] == pytest.approx(sum(errors) / len(errors))
    refused(twoscale("evaluate", run_folder, "--per-sample"), "pass --json as well")


def test_predict_of_a_single_field(twoscale, run_folder, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((16, 16)))
    out = tmp_path / "p.npy"
    assert twoscale("predict", run_folder, tmp_path / "x.npy", "--out", out).status == 0
    assert np.load(out).shape == (16, 16)


def test_import_command(twoscale, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "f.npz", k=rng.random((11, 8, 8)), p=rng.random((11, 8, 8)))
    arguments = ("--input", "k", "--output", "p", "--out", tmp_path / "d.zarr")
    assert twoscale("import", tmp_path / "f.npz", *arguments).status == 0
    assert Dataset(tmp_path / "d.zarr").samples == 11


@pytest.mark.usefixtures("small_chunks")
def test_killed_generation_continues(twoscale, tmp_path):
    """A process killed while it writes leaves no dataset; the same command then completes it."""
    out, whole = tmp_path / "d.zarr", tmp_path / "whole.zarr"
    recipe = ["generate", "poisson", "--resolution", "16", "--samples", "800", "--device", "cpu"]
    command = [sys.executable, "-c", IN_SMALL_CHUNKS, *recipe, "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    log = tmp_path / ".d.zarr.twoscale-work" / "log.jsonl"
    while process.poll() is None and not (log.exists() and log.stat().st_size):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    written = log.read_text()
    assert written
    assert twoscale(*recipe, "--out", out).status == 0
    assert twoscale(*recipe, "--out", whole).status == 0
    assert contents(out) == contents(whole)
    assert not log.exists()
