"""`fit` without a method."""

import json

import pytest

from tests.cli.outcome import refused
from twoscale.data import Dataset
from twoscale.run import Run, auto_run
from twoscale.search.fitting import FieldFitter


@pytest.fixture
def searched(twoscale, data, tmp_path):
    """A run of a search that has time for its first candidate only, and what was printed."""
    run = tmp_path / "r"
    outcome = twoscale("fit", data, "--budget", "0.001s", "--out", run)
    assert outcome.status == 0, outcome.err
    return run, outcome.out


def test_a_short_search_shows_both_errors_of_the_run(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--budget", "2s", "--out", tmp_path / "r")
    assert outcome.status == 0, outcome.err
    text = " ".join(outcome.out.split())
    for words in ("Mean relative L2 errors of the validation fields", "mean %", "MRE %"):
        assert words in text
    record = Run.open(tmp_path / "r").search
    assert record["measure"] == "mean_relative_l2"
    assert len(record["trials"]) > 1


def test_naming_what_was_found_fits_it_again(searched, twoscale, data, tmp_path):
    run, _ = searched
    config, again = json.loads((run / "config.json").read_text()), tmp_path / "again"
    record = Run.open(run).search
    trial = record["trials"][record["chosen"]]
    settings = [f"--set={name}={_text(value)}" for name, value in trial["settings"].items()]
    named = ("--method", trial["method"], *settings, "--out", again)
    assert twoscale("fit", data, *named).status == 0
    assert json.loads((again / "config.json").read_text())["hash"] == config["hash"]
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (run, again)]
    assert weights[0] == weights[1]
    assert Run.open(again).search is None


def _text(value):
    return "x".join(map(str, value)) if isinstance(value, list) else value


def test_without_a_terminal_every_trial_is_a_line(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--budget", "0.001s", "--out", tmp_path / "r")
    assert outcome.err.splitlines() == ["search: 0 of 0 seconds, 0 tried; now two-scale affine"]


def test_an_interrupted_search_writes_what_it_has_found(twoscale, data, tmp_path, monkeypatch):
    whole, tried = FieldFitter.fit, []

    def fit(self, candidate, deadline):
        tried.append(candidate)
        if len(tried) > 1:
            raise KeyboardInterrupt
        return whole(self, candidate, deadline)

    monkeypatch.setattr(FieldFitter, "fit", fit)
    outcome = twoscale("fit", data, "--out", tmp_path / "r")
    assert outcome.status == 0, outcome.err
    assert "; interrupted." in " ".join(outcome.out.split())
    record = Run.open(tmp_path / "r").search
    assert (record["stopped"], len(record["trials"])) == ("interrupted", 1)
    outcome = twoscale("fit", data, "--out", tmp_path / "none")
    assert outcome.status == 130, "nothing was found"
    assert not (tmp_path / "none").exists()


def test_an_encoder_is_searched_on_fields_that_stay_on_disk(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Dataset, "load_parts", None)
    settings = {"predictor": "encoder", "width": 4, "blocks": 1}
    run = auto_run(Dataset(data), tmp_path / "r", budget=3, settings=settings, memory=1000)
    assert run.surrogate.settings["predictor"] == "encoder"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--budget", "soon"), ("a time is given like 90s, 2min or 1h", "'soon'")),
        (("--seeds", "0-4"), ("a search is for one seed", "--method")),
        (("--method", "local", "--budget", "1min"), ("--budget is the time of a search",)),
        (("--set", "epoch=3"), ("'epoch'", "epochs")),
        (("--train-samples", 200), ("between 2 and 96 can train",)),
    ],
)
def test_what_cannot_be(twoscale, data, tmp_path, arguments, words):
    refused(twoscale("fit", data, *arguments, "--out", tmp_path / "r"), *words)
    assert list(tmp_path.iterdir()) == []
