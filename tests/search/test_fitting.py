import json

import numpy as np
import pytest
import torch

from twoscale import Surrogate, TwoscaleError, fit_auto
from twoscale.fields.source import ArraySource, FirstFields, MappedSource
from twoscale.files import to_json
from twoscale.predictors import Kernel
from twoscale.search.auto import refused_symmetries
from twoscale.search.fitting import FieldFitter
from twoscale.search.trials import HEADINGS, table_rows
from twoscale.surrogate.inputs import InputReader


class Ticks:
    """A clock that moves on by a tenth of a second at each look."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        self.time += 0.1
        return self.time


def fit(x, u, **options):
    given = {"budget": 10, "device": "cpu", "clock": Ticks()} | options
    return fit_auto(x, u, **given)


@pytest.fixture(scope="module")
def poisson(poisson16):
    return fit(*poisson16, problem="poisson")


def test_a_filter_is_found_where_it_is_exact(poisson, poisson16):
    x, u = poisson16
    assert poisson.surrogate.evaluate(x, u)["mre"] < 1e-6
    assert poisson.search.best.candidate.label == "whole-field filter"
    assert poisson.explanation[0].startswith("whole-field filter was the best of 2 candidates")


def test_fields_of_very_different_sizes_and_none():
    """The error is the mean of the fields' own; one ratio for all would see the large ones only."""
    x = 10.0 ** np.random.default_rng(1).uniform(-3, 0, (80, 1, 1)) * smooth(80, (16, 16))
    u = x.cumsum(1) + 0.1 * x**2
    u[60:63] = 0.0  # among the validation fields: no relative error, and no part in the mean
    held_out = (x[60:], u[60:])
    found = fit(x[:60], u[:60], validation=held_out, budget=5)
    metrics = found.surrogate.evaluate(*held_out)
    assert found.record["measure"] == "mean_relative_l2"
    assert found.search.best.error == pytest.approx(metrics["mean_relative_l2"], rel=1e-6)
    assert found.search.best.outcome.mre == pytest.approx(metrics["mre"], rel=1e-6)
    assert found.search.best.error != pytest.approx(metrics["mre"], rel=0.5)
    assert f"(MRE {100 * metrics['mre']:.3g} %) on validation fields" in found.explanation[0]


def test_the_result_is_a_surrogate_like_any_other(poisson, poisson16, tmp_path):
    surrogate, x = poisson.surrogate, poisson16.inputs
    chosen = poisson.search.best.candidate
    assert surrogate.method == chosen.chain
    assert surrogate.settings["predictor"] == chosen.predictor
    surrogate.save(tmp_path / "s")
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    assert torch.equal(loaded.predict(x[:5]), surrogate.predict(x[:5]))


def test_the_record_names_all_that_was_tried(poisson):
    record = json.loads(to_json(poisson.record))
    assert record["trials"][record["chosen"]]["error"] == poisson.search.best.outcome.error
    assert record["declared_symmetries"] == "square"
    assert record["explanation"] == poisson.explanation
    rows = table_rows(record)
    assert len(rows) == len(poisson.search.trials)
    assert all(len(row) == len(HEADINGS) for row in rows)
    assert [row[0].startswith("* ") for row in rows].count(True) == 1


def test_the_choice_depends_on_data_and_clock_only(poisson, poisson16):
    again = fit(*poisson16, problem="poisson")
    assert again.record == poisson.record
    first = poisson16.inputs[:3]
    assert torch.equal(again.surrogate.predict(first), poisson.surrogate.predict(first))


def test_symmetries_are_tried_where_declared(poisson16):
    x, u = poisson16
    plain = fit(x[:40], u[:40], budget=12, predictor="affine")
    turned = fit(x[:40], u[:40], budget=12, predictor="affine", symmetries="square")
    assert {trial.candidate.symmetries for trial in plain.search.trials} == {"none"}
    assert turned.search.best.candidate.symmetries == "square"
    assert turned.search.best.outcome.error < plain.search.best.outcome.error


def test_symmetries_that_the_data_do_not_have_are_not_used(poisson16):
    x, u = poisson16
    slope = torch.linspace(1, 3, x.shape[-1])
    found = fit(x, u * slope, budget=2, symmetries="square")
    assert {trial.candidate.symmetries for trial in found.search.trials} == {"none"}
    assert (
        "The data speak against symmetries=square: the mean or the variance of output changes. "
        "They were not used."
    ) in found.explanation
    assert not any("set symmetries" in sentence for sentence in found.explanation)
    first = fit(x, u * slope, budget=0.1, symmetries="square", predictor="encoder", epochs=1)
    assert first.search.best.candidate.symmetries == "none"
    pair = InputReader().pairs(x, u * slope, None, "training")
    assert refused_symmetries("mirror-rows", pair) == ""


@pytest.fixture(scope="module", autouse=True)
def short_trainings():
    """Let searches train an encoder for 12 epochs, not for 300."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twoscale.search.neighbours._MOST_EPOCHS", 12)
        yield


def smooth(samples, shape, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = (np.linspace(0, 1, side) if side > 1 else np.array([0.5]) for side in shape)
    modes = [
        np.outer(np.sin((i + 1) * 3 * rows), np.cos((j + 1) * 3 * columns))
        for i in range(3)
        for j in range(3)
    ]
    return np.tensordot(rng.standard_normal((samples, 9)), np.stack(modes), 1)


@pytest.mark.parametrize("shape", [(24, 16), (17, 23), (3, 3), (7, 7), (1, 16)])
def test_any_grid(shape):
    x = smooth(40, shape)
    found = fit(x, x.cumsum(2), budget=8)
    assert found.surrogate.predict(x[:2]).shape == (2, *shape)
    assert found.search.best.outcome.error < 0.1
    assert all(trial.failure is None for trial in found.search.trials)


def test_parameters_beside_fields_and_alone():
    x = smooth(120, (16, 16))
    p = np.random.default_rng(1).uniform(1, 2, (120, 2))
    u = x.cumsum(1) + p[:, :1, None] * np.linspace(0, 1, 16)
    beside = fit(x, u, parameters=p)
    predicted = beside.surrogate.predict(x[:3], parameters=p[:3])
    assert np.linalg.norm(predicted - u[:3]) < 0.02 * np.linalg.norm(u[:3])
    bumps = np.exp(-((np.linspace(0, 3, 16) - p[:, :1]) ** 2))
    fields = bumps[:, :, None] * (np.linspace(0, 1, 16) + p[:, 1:])[:, None]
    alone = fit(None, fields, parameters=p)
    assert alone.search.best.outcome.error < 0.01
    assert {trial.candidate.symmetries for trial in alone.search.trials} == {"none"}
    variances = {trial.candidate.input_variance for trial in alone.search.trials}
    assert len(variances) == 1, "there is nothing to see more of"
    assert alone.surrogate.predict(None, parameters=p[:3]).shape == (3, 16, 16)


def test_periodic_fields():
    waves = np.random.default_rng(0).standard_normal((60, 4, 1, 1))
    points = 2 * np.pi * np.arange(32) / 32
    modes = np.stack([np.add.outer(np.sin(k * points), np.cos(k * points)) for k in range(1, 5)])
    x = (waves * modes).sum(1)
    found = fit(x, np.roll(x, 3, axis=2), periodic=True, symmetries="shifts")
    assert found.surrogate.output_space_.grid.periodic == (True, True)
    assert found.search.best.outcome.error < 0.01
    assert found.record["declared_symmetries"] == "shifts"
    assert all(trial.failure is None for trial in found.search.trials)


def test_fields_that_never_vary():
    x = smooth(30, (16, 16))
    assert fit(x, np.ones_like(x), budget=6).search.best.outcome.error < 1e-6
    constant = fit(np.ones_like(x), x, budget=6)
    assert np.isfinite(constant.surrogate.predict(np.ones_like(x[:2]))).all()
    with pytest.raises(TwoscaleError, match="all validation outputs are zero"):
        fit(x, np.zeros_like(x))


def test_fields_that_single_precision_cannot_square():
    x = smooth(30, (16, 16))
    error = fit(x, x).search.best.outcome.error
    assert fit(x, 1e25 * x).search.best.outcome.error == pytest.approx(error, rel=0.1, abs=1e-6)
    with pytest.raises(TwoscaleError, match="too near to the end of single precision"):
        fit(x, 3e38 * x / np.abs(x).max())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": "soon"}, "a time is given like 90s, 2min or 1h, got 'soon'"),
        ({"budget": 0}, "a time is given like"),
        ({"epoch": 3}, "no setting 'epoch'"),
        ({"symmetries": "round"}, "symmetries must be one of none, mirror-rows, mirror-columns"),
        ({"symmetries": "problem"}, "needs a known problem"),
        ({"input_variance": 2}, "input_variance must be a fraction"),
        ({"seed": -1}, "the seed must be"),
    ],
)
def test_bad_arguments(options, words):
    x = smooth(20, (16, 16))
    with pytest.raises(TwoscaleError, match=words):
        fit(x, x, **options)


def test_first_fields_are_the_first():
    fields = torch.arange(5 * 64.0).reshape(5, 1, 8, 8)
    first = FirstFields(ArraySource(fields), 3)
    assert first.shape == (3, 1, 8, 8)
    assert torch.equal(torch.cat(list(first.to(torch.device("cpu")).chunks())), fields[:3])
    assert FirstFields(ArraySource(fields), 9).shape == (5, 1, 8, 8)


def test_progress_tells_the_time_and_the_best(poisson16):
    calls = []
    fit(*poisson16, predictor="affine", progress=lambda *told: calls.append(told))
    trials = [told for told in calls if told[0] == "seconds"]
    _, done, total, remark = trials[-1]
    assert total == 10
    assert 0 <= done <= 10
    assert "tried, best" in remark
    assert remark.endswith("on half of the samples")
    inside = calls[calls.index(trials[0]) + 1 : calls.index(trials[1])]
    assert {told[0] for told in inside} == {"representations"}, "what happens in a trial is told"


def test_a_candidate_that_is_too_much_is_passed_over(poisson16, monkeypatch):
    def too_much(self, *arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(Kernel, "prepare", too_much)
    x, u = poisson16
    found = fit(x, u.square(), budget=8)
    failures = {trial.failure for trial in found.search.trials} - {None}
    assert any("kernel is too large for this machine: no room" in failure for failure in failures)
    assert found.search.best.candidate.predictor != "kernel"
    assert any(row[5] == "failed" for row in table_rows(found.record))


def test_half_of_the_samples_may_be_too_much(poisson16, monkeypatch):
    x, u = (fields[:40] for fields in poisson16)
    found = fit(x, u, predictor="affine")
    assert found.search.half_error is not None
    whole = FieldFitter._fitted

    def fitted(self, candidate, training, *arguments, **options):
        if training is not self.training:
            raise torch.linalg.LinAlgError("it did not converge")
        return whole(self, candidate, training, *arguments, **options)

    monkeypatch.setattr(FieldFitter, "_fitted", fitted)
    again = fit(x, u, predictor="affine")
    assert again.search.half_error is None
    assert again.search.best.outcome == found.search.best.outcome


def test_stored_fields_are_searched_without_an_encoder(poisson16, monkeypatch):
    spaces = []
    monkeypatch.setattr("twoscale.search.auto.explain", lambda found, space: spaces.append(space))
    x, u = poisson16
    fit(x, u, budget=0.1)
    stored = poisson16.batch
    pairs = [MappedSource(ArraySource(fields), lambda chunk: chunk) for fields in stored]
    fit(*pairs, validation=(x[:20], u[:20]), budget=0.1)
    assert [space.stored for space in spaces] == [False, True]


def test_a_given_encoder_is_trained_shortly_and_then_for_longer(poisson16):
    x, u = (fields[:20] for fields in poisson16)
    settings = {"predictor": "encoder", "width": 4, "blocks": 1, "batch_size": 20}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twoscale.search.neighbours._MOST_EPOCHS", 9)
        found = fit(x, u, budget=40, **settings)
    epochs = [trial.candidate.epochs for trial in found.search.trials]
    assert epochs[0] == 2
    assert 9 in epochs
    assert found.search.trials[0].outcome.epoch_seconds > 0
    assert found.surrogate.settings["predictor"] == "encoder"
    assert table_rows(found.record)[0][2] == "all"


def test_a_training_that_the_clock_ends_has_the_settings_of_its_length(poisson16):
    x, u = (fields[:60] for fields in poisson16)
    settings = {"predictor": "encoder", "width": 4, "blocks": 1, "batch_size": 10}
    found = fit(x, u, budget=20, **settings)
    chosen = found.record["trials"][found.record["chosen"]]
    history = found.surrogate.history_["training"]
    epochs = len(history["validation_loss"])
    assert 1 < history["cut_after"] <= epochs < 300
    assert found.surrogate.settings["epochs"] == chosen["settings"]["epochs"] == epochs
    assert found.surrogate.parts.predictor.plan.epochs == epochs
    assert history["learning_rate"][-1] < 0.2 * max(history["learning_rate"])
    assert 16 <= found.search.seconds <= 21
    assert chosen["method"] == "whole-field"
    assert chosen["oracle"] == 0.0


@pytest.mark.gpu
def test_on_cuda_an_encoder_is_among_the_candidates(poisson16):
    x, u = poisson16
    found = fit_auto(x, u.square(), budget=120, device="cuda", clock=Ticks(), problem="darcy")
    encoders = [trial for trial in found.search.trials if trial.candidate.predictor == "encoder"]
    assert encoders
    assert all(trial.failure is None for trial in found.search.trials)
    assert encoders[0].outcome.epoch_seconds > 0
