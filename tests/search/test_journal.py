"""A search that is killed goes on: nothing that was tried is tried again."""

import json

import numpy as np
import pytest
import torch

from tests.search.test_fitting import Ticks
from twoscale.errors import UnreachableDataError
from twoscale.files import Checkpoint
from twoscale.search import fit_auto
from twoscale.search.fitting import FieldFitter


class Killed(BaseException):
    """Ends a search at once, as a kill would."""


class Counting:
    """Fits as usual, notes what it fits, and is killed at some candidate."""

    def __init__(self, patch, kill_at=None, inside=False):
        self.fitted = []
        fit = FieldFitter.fit

        def counted(fitter, candidate, deadline):
            if len(self.fitted) == kill_at and not inside:
                raise Killed
            self.fitted.append(candidate.label)
            outcome = fit(fitter, candidate, deadline)
            if len(self.fitted) - 1 == kill_at:
                raise Killed
            return outcome

        patch.setattr(FieldFitter, "fit", counted)


@pytest.fixture
def fields(poisson16):
    return poisson16.inputs[:80], poisson16.outputs[:80]


def run(fields, folder, patch, kill_at=None, inside=False, **options):
    counting = Counting(patch, kill_at, inside)
    options = {"budget": 1e4, "device": "cpu", "journal_folder": folder} | options
    return fit_auto(*fields, **options), counting.fitted


def run_killed(fields, folder, kill_at, **options):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        run(fields, folder, patch, kill_at, **options)


GIVEN = {"predictor": "affine"}  # a search of few and quick candidates


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("kill_at", [0, 2])
def test_it_goes_on(fields, tmp_path, monkeypatch, kill_at, inside):
    with pytest.MonkeyPatch.context() as patch:
        whole, labels = run(fields, tmp_path / "a", patch, **GIVEN)
    run_killed(fields, tmp_path / "b", kill_at, inside=inside, **GIVEN)
    resumed, rest = run(fields, tmp_path / "b", monkeypatch, **GIVEN)
    assert rest == labels[kill_at:]
    assert [trial.candidate for trial in resumed.search.trials] == [
        trial.candidate for trial in whole.search.trials
    ]
    errors = [[trial.error for trial in one.search.trials] for one in (whole, resumed)]
    assert errors[0] == errors[1]
    new = fields[0][:5].numpy()
    np.testing.assert_array_equal(resumed.surrogate.predict(new), whole.surrogate.predict(new))
    assert resumed.surrogate.history_.keys() == whole.surrogate.history_.keys()


def test_the_time_that_was_used_counts(fields, tmp_path, monkeypatch):
    time = 0.0

    def clock():
        return time

    fit = FieldFitter.fit

    def slow(fitter, candidate, deadline):
        nonlocal time
        time += 60.0
        if time > 170.0:
            fitter.progress("training", 1, 2, "")
            raise Killed
        return fit(fitter, candidate, deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FieldFitter, "fit", slow)
        with pytest.raises(Killed):
            fit_auto(
                *fields, budget=600.0, device="cpu", journal_folder=tmp_path, clock=clock, **GIVEN
            )
    time = 1000.0
    found = fit_auto(
        *fields, budget=600.0, device="cpu", journal_folder=tmp_path, clock=clock, **GIVEN
    )
    assert found.search.seconds == 180.0
    assert [trial.seconds for trial in found.search.trials[:3]] == [60.0, 60.0, 60.0]


@pytest.mark.parametrize("damage", ["digit", "best", "nothing", "another version"])
def test_what_is_damaged_is_begun_anew(fields, tmp_path, monkeypatch, damage):
    run_killed(fields, tmp_path, 2, **GIVEN)
    path = tmp_path / "search.json"
    if damage == "digit":
        path.write_text(path.read_text().replace('"input_code": ', '"input_code": 1', 1))
    elif damage == "best":
        (weights,) = tmp_path.glob("best-*/weights.safetensors")
        weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    elif damage == "nothing":
        path.unlink()
    else:
        path.write_text(json.dumps({"trials": 3}))
    _, rest = run(fields, tmp_path, monkeypatch, **GIVEN)
    assert len(rest) > 2


def test_a_long_training_inside_goes_on(fields, tmp_path, monkeypatch):
    """The candidate that was being trained is trained to the same weights."""
    options = {
        "predictor": "encoder",
        "epochs": 4,
        "width": 4,
        "blocks": 1,
        "coarse_components": 4,
    }
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(Checkpoint, "worthwhile", lambda self: True)
    whole = fit_auto(*fields, budget=0.01, device="cpu", **options)
    seen = []

    def stop(stage, done, total, remark):
        if stage == "training" and done == 3:
            raise Killed

    def note(stage, done, total, remark):
        if stage == "training":
            seen.append(done)

    common = {"budget": 0.01, "device": "cpu", "journal_folder": tmp_path / "j", **options}
    with pytest.raises(Killed):
        fit_auto(*fields, progress=stop, **common)
    resumed = fit_auto(*fields, progress=note, **common)
    assert seen == [3, 4] or seen == [4]
    for one, two in zip(
        whole.surrogate.operator_.state_dict().values(),
        resumed.surrogate.operator_.state_dict().values(),
        strict=True,
    ):
        assert torch.equal(one, two)


def test_a_training_that_is_continued_keeps_its_deadline(fields, tmp_path, monkeypatch):
    options = {"predictor": "encoder", "width": 4, "blocks": 1, "batch_size": 16, "device": "cpu"}
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    totals = []

    def stop(stage, done, total, remark):
        if stage == "training":
            totals.append(total)
        if len(set(totals)) == 2 and done == 4:  # in the long training
            raise Killed

    with pytest.raises(Killed):
        fit_auto(
            *fields, progress=stop, budget=20, clock=Ticks(), journal_folder=tmp_path, **options
        )
    noted = json.loads((tmp_path / "search.json").read_text())["running"][0]
    found = fit_auto(*fields, budget=20, clock=Ticks(), journal_folder=tmp_path, **options)
    assert len(found.search.trials) == 2
    assert found.search.trials[1].candidate.epochs > 4
    assert noted["deadline"] - 1 < found.search.seconds <= 21


def test_the_last_candidate_is_noted_too(fields, tmp_path, monkeypatch):
    """What comes after it may be ended by an outage."""

    def lose_data(fitter, candidate, deadline):
        raise UnreachableDataError("the disk is away")

    monkeypatch.setattr(FieldFitter, "half_error", lose_data)
    with pytest.raises(UnreachableDataError):
        run(fields, tmp_path, monkeypatch, **GIVEN)
    kept = json.loads((tmp_path / "search.json").read_text())
    assert kept["running"] == []
    tried = [trial["candidate"] for trial in kept["trials"]]
    monkeypatch.undo()
    found, fitted = run(fields, tmp_path, monkeypatch, **GIVEN)
    assert fitted == []
    assert len(found.search.trials) == len(tried)
