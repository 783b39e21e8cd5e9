"""What every command prints with --json and with --quiet, and how its help looks."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.lab.study.synthetic import make_record, write_record
from tests.surrogate.tiny import RECORD
from twoscale import Grid, Poisson, Surrogate

PAGE = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.+)` \| (`.+`) \|$", PAGE.partition("Keys of the JSON")[2], re.M)
JSON_KEYS = {command: re.findall(r"`(\w+)`", keys) for command, keys in ROWS}
"""Keys of the object that a command prints with `--json`; `mre` stands for all of metrics.json."""

LEARNED_NOTHING = {"mre": 0.5, "oracle_mre": 0.1, "timings": {"total": 1.0}}
FIT = ("--method", "local", "--set", "epochs=1")


@pytest.fixture
def commands(data, run_folder, tmp_path, monkeypatch):
    """A command line of every command, and what a quiet one prints."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((3, 16, 16)))
    np.savez(tmp_path / "x.npz", a=rng.random((4, 8, 8)), u=rng.random((4, 8, 8)))
    pairs = Poisson().pairs(Grid((16, 16)), range(20), seed=1)
    Surrogate.load(run_folder).calibrate(*pairs).save(tmp_path / "calibrated")
    write_record(tmp_path / "records", make_record("mine", ["poisson-128 local"]), fields=False)
    runs = {"local": SimpleNamespace(metrics=LEARNED_NOTHING)}
    monkeypatch.setattr("twoscale.cli.demo_parts.run_demo", lambda *_, **options: runs)
    monkeypatch.setattr("twoscale_lab.bench.run_benchmarks", lambda names, setup: iter(()))
    monkeypatch.setattr("twoscale.report.run_page.illustrate_run", lambda *given: None)
    monkeypatch.setattr("twoscale.serve.Server.run", lambda server: None)
    out = tmp_path / "out"
    to = ("--out", out)
    made = ("--resolution", 9, "--samples", 4, "--device", "cpu")
    return {
        "demo": (("demo", *to), out),
        "generate": (("generate", "poisson", *made, *to), out),
        "import": (("import", tmp_path / "x.npz", "--input", "a", "--output", "u", *to), out),
        "check": (("check", data), None),
        "fit": (("fit", data, *FIT, *to), out),
        "fit --seeds": (("fit", data, *FIT, "--seeds", "0", *to), out),
        "finetune": (("finetune", run_folder, "--epochs", 1, "--warm-up", 0, *to), out),
        "evaluate": (("evaluate", run_folder), None),
        "predict": (("predict", run_folder, tmp_path / "x.npy", *to), out),
        "predict --assess": (
            ("predict", tmp_path / "calibrated", tmp_path / "x.npy", "--assess", *to),
            out,
        ),
        "predict --certify": (("predict", run_folder, tmp_path / "x.npy", "--certify", *to), out),
        "predict --polish": (("predict", run_folder, tmp_path / "x.npy", "--polish", 1, *to), out),
        "serve": (("serve", run_folder, "--port", 0), None),
        "report": (("report", run_folder, *to), out),
        "study report": (("study", "report", tmp_path / "records", *to), out),
        "explore": (("explore", run_folder, *to), out),
        "bench": (("bench",), None),
        "study list": (("study", "list", "--scale", "small"), None),
        "study compare": (("study", "compare", tmp_path / "records"), None),
    }


@pytest.mark.parametrize("command", JSON_KEYS)
def test_json_is_one_object_with_known_keys(twoscale, commands, command):
    arguments, out = commands[command]
    outcome = twoscale(*arguments, "--json", "--quiet")
    assert outcome.status == 0, outcome.err
    assert outcome.err == ""
    printed = json.loads(outcome.out)
    keys = set(JSON_KEYS[command])
    if "mre" in keys:
        assert set(printed) >= keys | RECORD
    else:
        assert set(printed) == keys
    assert printed.get("out") == (out and str(out))


@pytest.mark.parametrize("command", ["demo", "generate", "check", "evaluate", "predict"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_quiet_command_prints_the_path_of_its_result(twoscale, commands, command, place):
    arguments, out = commands[command]
    line = ("-q", *arguments) if place == "before" else (*arguments, "--quiet")
    assert twoscale(*line) == (0, "" if out is None else f"{out}\n", "")


def test_errors_are_told_in_quiet_too(twoscale, tmp_path):
    outcome = twoscale("-q", "check", tmp_path / "none")
    assert (outcome.status, outcome.out) == (2, "")
    assert "does not exist" in outcome.err
    assert twoscale("--quiet", "study", "list", "--help").out.startswith("Usage: ")


@pytest.mark.parametrize("width", [80, 200])
def test_output_fits_the_terminal(twoscale, run_folder, monkeypatch, width):
    monkeypatch.setattr("twoscale.cli.terminal.terminal_width", lambda stream=None: width)
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (("evaluate", run_folder), ("fit", "--help"), ("--help",)):
        for line in twoscale(*arguments).out.splitlines():
            assert len(line) <= width or len(line.split()) <= 2  # a word, and the name before it
    help_page = " ".join(twoscale("fit", "--help").out.split())
    assert "--train-samples N Use only this many training samples." in help_page
