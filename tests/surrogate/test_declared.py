"""Predictors and symmetries that a surrogate is told of."""

import numpy as np
import pytest
import torch

from tests.surrogate.tiny import make, tiny
from twoscale import Affine, Poisson, Surrogate, TwoscaleError, TwoscaleWarning


@pytest.mark.parametrize("predictor", ["affine", "affine-mlp", "kernel"])
def test_predictors_are_saved_and_loaded_with_what_they_chose(predictor, arrays, tmp_path):
    x, u, new, _ = arrays
    surrogate = make("two-scale", predictor=predictor).fit(x, u)
    surrogate.save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))
    assert loaded.chosen_ == surrogate.chosen_
    assert 0 < loaded.chosen_["validation_error"] < 1
    assert loaded.settings == surrogate.settings


@pytest.mark.gpu
@pytest.mark.parametrize("predictor", ["affine", "affine-mlp", "kernel"])
def test_a_gpu_gives_what_a_cpu_gives(predictor, arrays):
    x, u, new, _ = arrays
    options = {"predictor": predictor, "symmetries": "square", "objective": "field"}
    options |= {"solver": "covariance", **({"epochs": 2} if "mlp" in predictor else {})}
    here, there = (
        Surrogate("two-scale", device=device, **tiny("two-scale", **options)).fit(x, u)
        for device in ("cpu", "cuda")
    )
    expected = here.predict(new)
    error = np.linalg.norm(there.predict(new) - expected) / np.linalg.norm(expected)
    assert error < (1e-3 if predictor != "affine-mlp" else 0.05)


def test_the_papers_network_chooses_nothing(fitted):
    assert all(surrogate.chosen_ == {} for surrogate in fitted.values())


def test_a_known_problem_declares_its_symmetries(arrays, tmp_path):
    x, u, new, _ = arrays
    options = {"predictor": "affine", "average_symmetries": True}
    declared = make("local", problem="poisson", symmetries="problem", **options).fit(x, u)
    named = make("local", symmetries="square", **options).fit(x, u)
    assert declared.settings["symmetries"] == "square"
    np.testing.assert_array_equal(declared.predict(new), named.predict(new))
    declared.save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    np.testing.assert_array_equal(loaded.predict(new), declared.predict(new))


def test_an_unknown_problem_declares_none():
    wanted = r"needs a known problem: .* \(none, mirror-rows, .*, square, shifts\)"
    with pytest.raises(TwoscaleError, match=wanted):
        make("local", symmetries="problem")


def test_without_symmetries_there_is_nothing_to_average(monkeypatch):
    wanted = "average_symmetries=true needs symmetries .* got symmetries=none: set symmetries=squ"
    with pytest.raises(TwoscaleError, match=wanted):
        make("local", average_symmetries=True)
    monkeypatch.setattr(Poisson, "symmetric_under", "none")
    with pytest.raises(TwoscaleError, match=wanted):
        make("local", problem="poisson", symmetries="problem", average_symmetries=True)
    assert make("fno").settings  # has neither


@pytest.mark.parametrize("predictor", ["affine", "affine-mlp", "kernel"])
def test_without_any_ridge_predictions_are_finite(predictor):
    x, u = np.random.default_rng(0).standard_normal((2, 60, 16, 24))
    options = {"ridge": 0, "input_variance": 1.0, "few_features": False}
    surrogate = make("two-scale", predictor=predictor, **options).fit(x, u)
    assert np.isfinite(surrogate.predict(x)).all()


def test_a_fit_whose_weights_are_not_finite_is_refused(arrays, monkeypatch):
    x, u, *_ = arrays
    complete = Affine.complete

    def spoil(self):
        complete(self)
        self.network[0].weight.data[0, 0] = torch.nan

    monkeypatch.setattr(Affine, "complete", spoil)
    wanted = "predictor.network.0.weight values .* a larger ridge .* smaller learning"
    with pytest.raises(TwoscaleError, match=wanted):
        make("local", predictor="affine").fit(x, u)


def test_switched_off_symmetries_change_nothing(fitted, arrays):
    x, u, new, truth = arrays
    off = make("two-scale", problem="poisson", seed=2, symmetries="none", average_symmetries=False)
    ours, theirs = (one.evaluate(new, truth) for one in (off.fit(x, u), fitted["two-scale"]))
    for metrics in (ours, theirs):
        metrics.pop("timings")
    assert ours == theirs


def test_symmetries_are_worth_samples(arrays):
    x, u, new, truth = arrays
    options = {"predictor": "affine", "input_variance": 0.999, "coarse_factor": 2}
    plain, symmetric = (
        make("two-scale", symmetries=symmetries, few_features=False, **options)
        .fit(x[:60], u[:60])
        .evaluate(new, truth)["mre"]
        for symmetries in ("none", "square")
    )
    assert symmetric < 0.5 * plain


def test_symmetries_that_the_data_speak_against(arrays, recwarn):
    x, u, *_ = arrays
    slope = np.linspace(1, 3, u.shape[-1], dtype=u.dtype)
    make("local", predictor="affine", symmetries="mirror-rows").fit(x, u * slope)
    assert not [one for one in recwarn if one.category is TwoscaleWarning]
    wanted = "speak against symmetries=mirrors: the mean or the variance of output changes; fit"
    with pytest.warns(TwoscaleWarning, match=wanted):
        make("local", predictor="affine", symmetries="mirrors").fit(x, u * slope)
