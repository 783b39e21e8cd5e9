import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import BATCH_VALUES, CHUNK_BYTES
from tests.cli.outcome import contents, refused
from twoscale import __version__
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


def test_help_has_an_example(twoscale):
    for command in ("demo", "generate", "import", "check", "fit", "evaluate", "predict", "serve"):
        outcome = twoscale(command, "--help")
        assert outcome.status == 0
        assert f"Examples:\n    twoscale {command}" in outcome.out


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


def test_evaluate_prints_the_error_of_each_sample(twoscale, run_folder):
    metrics = json.loads(twoscale("evaluate", run_folder, "--json", "--per-sample").out)
    errors = metrics["per_sample"]["error"]
    assert len(errors) == metrics["samples"]
    assert metrics["mean_relative_l2"] == pytest.approx(sum(errors) / len(errors))
    refused(twoscale("evaluate", run_folder, "--per-sample"), "pass --json as well")


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
