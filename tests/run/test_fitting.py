"""One run, and that several runs are each what it is alone."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import twoscale
from twoscale import Poisson, Surrogate
from twoscale.data import Dataset, generate
from twoscale.files import Checkpoint
from twoscale.run import Run, RunRequest, fit_run, fit_runs
from twoscale.run.pairs import reads_on_each_pass, split_pairs

SETTINGS = {"epochs": 3, "hidden_width": 8}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    generate(Poisson(), folder / "p.zarr", resolution=16, samples=80)
    return Dataset(folder / "p.zarr")


def fit(dataset, out, **options):
    given = {"method": "local", "settings": SETTINGS, "device": "cpu"} | options
    return fit_run(dataset, out, **given)


def weights(run):
    return (run.path / "weights.safetensors").read_bytes()


def metrics(run):
    content = json.loads((run.path / "metrics.json").read_text())
    return {name: value for name, value in content.items() if name != "timings"}


def test_a_run_is_the_fit_of_its_training_split(dataset, tmp_path):
    run = fit(dataset, tmp_path / "r", seed=2)
    request = RunRequest(tmp_path / "r", "local", 2, SETTINGS)
    alone = Surrogate("local", device="cpu", seed=2, problem="poisson", **SETTINGS)
    data = split_pairs(dataset, request.split(dataset, None, alone), stored=False)
    alone.fit(data.training.inputs, data.training.outputs, validation=data.validation)
    new = data.test.inputs.batch().fields[:, 0].numpy()
    np.testing.assert_array_equal(run.surrogate.predict(new), alone.predict(new))
    opened = Run.open(run.path, device="cpu")
    assert opened.config["hash"] == run.config["hash"]
    assert opened.config["training_samples"] == len(data.training)
    np.testing.assert_array_equal(opened.surrogate.predict(new), alone.predict(new))


def test_many_fits_are_each_what_one_is(dataset, tmp_path):
    alone = [fit(dataset, tmp_path / f"alone-{seed}", seed=seed) for seed in range(2)]
    requests = [RunRequest(tmp_path / f"r-{seed}", "local", seed, SETTINGS) for seed in range(2)]
    together = fit_runs(dataset, requests, device="cpu")
    for one, other in zip(alone, together, strict=True):
        assert one.config["hash"] == other.config["hash"]
        found, expected = metrics(other), metrics(one)
        assert (found.pop("trained_together"), expected.pop("trained_together")) == (2, 1)
        assert found["mre"] == pytest.approx(expected["mre"], rel=1e-4)
        assert found.keys() == expected.keys()


def test_a_run_that_was_killed_goes_on(dataset, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    epochs = []

    def progress(stage, done, total, remark):
        if stage == "training" and done:
            epochs.append(done)
            if len(epochs) == 2:
                raise Killed

    whole = fit(dataset, tmp_path / "whole")
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(Checkpoint, "worthwhile", lambda self: True)
    with pytest.raises(Killed):
        fit(dataset, tmp_path / "r", progress=progress)
    assert not (tmp_path / "r").exists()
    resumed = fit(dataset, tmp_path / "r", progress=progress)
    assert epochs[-1] == 3
    assert len(epochs) < 5, "the epochs before are not run again"
    assert weights(resumed) == weights(whole)
    assert {path.name for path in tmp_path.iterdir()} == {"r", "whole"}


def test_fields_that_are_too_large_are_read_on_each_pass(dataset, tmp_path):
    assert not reads_on_each_pass(dataset, None)
    assert reads_on_each_pass(dataset, 1000)
    small = fit(dataset, tmp_path / "r", memory=1000)
    whole = fit(dataset, tmp_path / "whole")
    assert metrics(small)["mre"] == pytest.approx(metrics(whole)["mre"], rel=1e-4)


def test_a_fit_enters_few_rooms(dataset, tmp_path):
    root, entered = Path(twoscale.__file__).parent, set()

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(root):
            entered.add(str(path.relative_to(root)))

    sys.setprofile(note)
    try:
        fit(dataset, tmp_path / "r")
    finally:
        sys.setprofile(None)
    assert {"run/fitting.py", "surrogate/driver.py", "operators/operators.py"} <= entered
    rooms = {name.split("/")[0] for name in entered}
    assert not {"search", "study", "report", "finetuning"} & rooms
