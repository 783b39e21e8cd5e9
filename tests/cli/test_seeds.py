"""Several seeds at once: a run folder each, or none at all."""

import json

import pytest

from tests.cli.outcome import refused
from twoscale import TwoscaleError
from twoscale.data import Dataset
from twoscale.run import RunRequest, fit_run, fit_runs

QUICK = ("--method", "local", "--set", "epochs=2")
SETTINGS = {"epochs": 2}


def read(run, name):
    return json.loads((run / f"{name}.json").read_text())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_each_seed_gets_a_run_folder(twoscale, data, tmp_path):
    out = tmp_path / "runs"
    outcome = twoscale("fit", data, *QUICK, "--seeds", "0-1", "--out", out)
    assert outcome.status == 0, outcome.err
    assert "local 0" in outcome.out
    assert "local 1" in outcome.out
    assert names(out) == ["seed-0", "seed-1"]
    for seed in (0, 1):
        run = out / f"seed-{seed}"
        assert read(run, "config")["seed"] == seed
        assert read(run, "history")["training"]["members"] == 2
        assert (run / "report.html").is_file()
        assert json.loads(twoscale("evaluate", run, "--json").out)["mre"] == pytest.approx(
            read(run, "metrics")["mre"]
        )
    assert read(out / "seed-0", "split") != read(out / "seed-1", "split")


def test_runs_together_are_the_runs_alone(data, tmp_path):
    dataset = Dataset(data)
    options = {"method": "two-scale", "settings": SETTINGS, "device": "cpu"}
    requests = [RunRequest(tmp_path / f"{k}", "two-scale", k, SETTINGS) for k in (0, 4)]
    together = fit_runs(dataset, requests, device="cpu")
    for run in together:
        seed = run.config["seed"]
        alone = fit_run(dataset, tmp_path / f"alone-{seed}", seed=seed, **options)
        assert run.config == alone.config
        assert (run.path / "split.json").read_bytes() == (alone.path / "split.json").read_bytes()
        for name in ("mre", "oracle_mre", "value_trace_error"):
            assert run.metrics[name] == pytest.approx(alone.metrics[name], rel=1e-5)


# Refusals and failures


@pytest.mark.parametrize("text", ["one", "-1", "0-5000"])
def test_seeds_that_are_none(twoscale, data, tmp_path, text):
    outcome = twoscale("fit", data, *QUICK, f"--seeds={text}", "--out", tmp_path / "r")
    refused(outcome, text, "seeds")
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize("error", [TwoscaleError, KeyboardInterrupt])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_one_seed_that_fails_leaves_nothing_of_any(data, tmp_path, failing, error):
    def illustrate(folder, fitted):
        assert (folder / "metrics.json").exists()
        if fitted.surrogate.seed == failing:
            raise error("boom")

    folder = tmp_path / "new"
    requests = [RunRequest(folder / f"seed-{k}", "local", k, SETTINGS) for k in range(3)]
    with pytest.raises(error, match="boom"):
        fit_runs(Dataset(data), requests, illustrate=illustrate)
    assert list(tmp_path.iterdir()) == []


# Kills


class Killed(BaseException):
    """Ends a command at once, as a kill would."""


def test_a_kill_between_two_runs_costs_no_training(data, tmp_path, monkeypatch):
    """The runs that have appeared are kept; the others are not trained again."""
    from twoscale.files import Checkpoint, WorkFolder
    from twoscale.files.outputs import Output

    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(Checkpoint, "worthwhile", lambda self: True)
    folder, settings = tmp_path / "r", {"epochs": 2}
    requests = [RunRequest(folder / f"seed-{k}", "local", k, settings) for k in range(3)]
    commit, committed = Output.commit, []

    def killed(output):
        if committed:
            raise Killed
        commit(output)
        committed.append(output)

    with monkeypatch.context() as patch:
        patch.setattr(Output, "commit", killed)
        patch.setattr(WorkFolder, "remove", WorkFolder.release)
        with pytest.raises(Killed):
            fit_runs(Dataset(data), requests)
    told = []
    runs = fit_runs(Dataset(data), requests, progress=lambda stage, *rest: told.append(stage))
    assert [run.surrogate.seed for run in runs] == [0, 1, 2]
    assert "training" not in told
    assert names(tmp_path / "r") == ["seed-0", "seed-1", "seed-2"]


def test_a_kept_run_that_is_damaged_is_told_before_the_work(twoscale, data, tmp_path):
    out = tmp_path / "r"
    assert twoscale("fit", data, *QUICK, "--seeds", "0-1", "--out", out).status == 0
    (out / "seed-0" / "metrics.json").write_text("{}")
    command = ("fit", data, *QUICK, "--seeds", "0-2", "--out", out)
    refused(twoscale(*command), "metrics.json is damaged")
    assert names(out) == ["seed-0", "seed-1"]


def test_finished_seeds_are_kept_unless_nothing_is_to_be_resumed(twoscale, data, tmp_path):
    out = tmp_path / "r"
    assert twoscale("fit", data, *QUICK, "--seeds", "0-1", "--out", out).status == 0
    command = ("fit", data, *QUICK, "--seeds", "0-2", "--out", out)
    refused(twoscale(*command, "--no-resume"), "exists already")
    assert twoscale(*command).status == 0
    assert names(out) == ["seed-0", "seed-1", "seed-2"]
