"""Fit, predict, evaluate: what every surrogate does."""

import numpy as np
import pytest
import torch

from tests.representation.contract import Chunks
from tests.surrogate.tiny import RECORD, TINY, make
from twoscale import METHODS, Poisson, Surrogate, TwoscaleError
from twoscale.runtime.threads import one_thread

any_method = pytest.mark.parametrize("method", METHODS)


# Fit and predict


@any_method
def test_numpy_in_numpy_out_and_torch_in_torch_out(method, fitted, arrays):
    new = arrays[2]
    as_array = fitted[method].predict(new)
    as_tensor = fitted[method].predict(torch.from_numpy(new))
    assert isinstance(as_array, np.ndarray)
    assert isinstance(as_tensor, torch.Tensor)
    assert as_array.shape == new.shape
    assert as_array.dtype == np.float32
    np.testing.assert_array_equal(as_array, as_tensor.numpy())
    assert np.isfinite(as_array).all()


@any_method
def test_fitting_on_tensors_is_fitting_on_arrays(method, fitted, arrays):
    x, u, new, _ = arrays
    other = make(method, seed=2).fit(torch.from_numpy(x), torch.from_numpy(u))
    np.testing.assert_array_equal(other.predict(new), fitted[method].predict(new))


@any_method
def test_the_same_seed_gives_the_same_surrogate_and_another_does_not(method, fitted, arrays):
    x, u, new, _ = arrays
    again, other = make(method, seed=2).fit(x, u), make(method, seed=3).fit(x, u)
    expected = fitted[method].predict(new)
    np.testing.assert_array_equal(again.predict(new), expected)
    assert again.history_ == fitted[method].history_
    assert not np.array_equal(other.predict(new), expected)


def test_arguments_are_left_unchanged(arrays):
    x, u, new, truth = (array.copy() for array in arrays)
    surrogate = make("two-scale").fit(x, u)
    surrogate.predict(new)
    surrogate.evaluate(new, truth)
    for copy, original in zip((x, u, new, truth), arrays, strict=True):
        np.testing.assert_array_equal(copy, original)


def test_double_precision_and_integers_are_accepted(arrays):
    x, u, new, _ = arrays
    surrogate = make("local").fit(x.astype(np.float64), u.astype(np.float64))
    expected = make("local").fit(x, u).predict(new)
    np.testing.assert_array_equal(surrogate.predict(new.astype(np.float64)), expected)
    assert surrogate.predict(np.ones((1, 16, 16), dtype=int)).shape == (1, 16, 16)


@any_method
def test_batches_do_not_matter(method, fitted, arrays):
    new = arrays[2]
    whole = fitted[method].predict(new)
    parts = fitted[method].predict(new, batch_size=7)
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-6)


def test_strided_arrays(fitted, arrays):
    new = arrays[2]
    expected = fitted["local"].predict(np.ascontiguousarray(new[::2]))
    np.testing.assert_array_equal(fitted["local"].predict(new[::2]), expected)


def test_a_tenth_is_held_out_of_a_shuffle_by_the_seed(arrays):
    x, u, new, _ = arrays
    order = np.random.default_rng(5).permutation(len(x))
    rest, last = np.sort(order[:-16]), np.sort(order[-16:])
    by_hand = make("local", seed=5).fit(x[rest], u[rest], validation=(x[last], u[last]))
    automatic = make("local", seed=5).fit(x, u)
    assert automatic.training_samples_ == 144
    np.testing.assert_array_equal(automatic.predict(new), by_hand.predict(new))


def test_chunked_sources(arrays):
    x, u, new, truth = (torch.from_numpy(array)[:, None] for array in arrays)
    surrogate = make("two-scale").fit(Chunks(x), Chunks(u), validation=(Chunks(new), Chunks(truth)))
    metrics = surrogate.evaluate(Chunks(new), Chunks(truth))
    assert metrics["samples"] == 40
    assert metrics["mre"] == pytest.approx(
        surrogate.evaluate(new[:, 0].numpy(), truth[:, 0].numpy())["mre"], rel=1e-5
    )


def test_fit_returns_the_surrogate_and_can_be_repeated(arrays):
    x, u, new, _ = arrays
    surrogate = make("local")
    assert surrogate.fit(x, u) is surrogate
    first = surrogate.predict(new)
    np.testing.assert_array_equal(surrogate.fit(x, u).predict(new), first)


def test_an_easy_linear_problem_is_recovered(generator):
    """Five patterns in, five patterns out, and a linear map between their amplitudes."""
    patterns_in, patterns_out = torch.randn(2, 5, 16 * 16, generator=generator)
    amplitudes = torch.randn(300, 5, generator=generator)
    mixing = torch.randn(5, 5, generator=generator)
    x = (amplitudes @ patterns_in).reshape(-1, 16, 16)
    u = (amplitudes @ mixing @ patterns_out).reshape(-1, 16, 16)
    surrogate = Surrogate(
        "global",
        device="cpu",
        input_variance=0.9999,
        output_variance=0.9999,
        hidden_layers=0,
        epochs=150,
        learning_rate=0.05,
        weight_decay=0,
        patience=10,
    )
    metrics = surrogate.fit(x[:250], u[:250]).evaluate(x[250:], u[250:])
    assert (metrics["input_code"], metrics["output_code"]) == (5, 5)
    assert metrics["oracle_mre"] < 1e-4
    assert metrics["mre"] < 0.01


def test_two_scale_learns_poisson(poisson16):
    """A short end-to-end run is far better than predicting the mean, and not below its oracle."""
    x, u = poisson16
    surrogate = Surrogate(
        "two-scale", device="cpu", epochs=60, learning_rate=3e-3, coarse_components=6
    )
    metrics = surrogate.fit(x[:170], u[:170]).evaluate(x[170:], u[170:])
    assert metrics["oracle_mre"] < metrics["mre"] < 0.35


def test_read_only_arrays_are_taken_without_complaint(fitted, arrays, recwarn):
    inputs = arrays[0][:3].copy()
    inputs.flags.writeable = False
    fitted["local"].predict(inputs)
    assert not recwarn.list


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("method", ["fno", "refinement"])
def test_fits_on_two_threads_repeat_themselves(method, arrays):
    """Networks of fields are trained on all threads, unlike those of codes."""
    x, u, new, _ = arrays
    one, two = (make(method, seed=1).fit(x[:50], u[:50]) for _ in range(2))
    assert one.history_ == two.history_
    states = one.operator_.state_dict(), two.operator_.state_dict()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    np.testing.assert_array_equal(one.predict(new), two.predict(new))


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("method", ["local", "two-scale", "conforming"])
def test_fits_with_the_full_solver_do_not_depend_on_threads(method, poisson32):
    x, u = poisson32
    settings = {"solver": "full", "epochs": 4}
    surrogates = [Surrogate(method, seed=1, device="cpu", **settings) for _ in range(2)]
    surrogates[0].fit(x[:180], u[:180])
    with one_thread():
        surrogates[1].fit(x[:180], u[:180])
        several, alone = (surrogate.predict(x[-20:]) for surrogate in surrogates)
    assert surrogates[0].retained == surrogates[1].retained
    assert float((several - alone).norm() / alone.norm()) < 1e-6


# Evaluation


@any_method
def test_the_metrics_are_complete(method, fitted, arrays):
    _, _, new, truth = arrays
    metrics = fitted[method].evaluate(new, truth)
    assert set(metrics) >= RECORD
    assert set(metrics["common_seams"]) == {
        name for name in RECORD if "jump" in name or "_trac" in name
    }
    for name in ("mre", "mse", "mae", "value_jump", "residual_rms", "residual_mean_abs"):
        assert metrics[name] > 0
    timings = metrics["timings"]
    parts = sum(value for name, value in timings.items() if name != "total")
    assert timings["total"] == pytest.approx(parts)
    assert set(timings) >= {"training", "inference", "transform", "total"}
    predicted = fitted[method].predict(new)
    expected = np.linalg.norm(predicted - truth) / np.linalg.norm(truth)
    assert metrics["mre"] == pytest.approx(float(expected), rel=1e-4)


def test_without_the_equation_residuals_are_unknown(arrays):
    x, u, new, truth = arrays
    metrics = make("local").fit(x, u).evaluate(new, truth)
    assert metrics["residual_rms"] is None
    assert metrics["residual_mean_abs"] is None


def test_a_problem_can_be_given_by_name_or_as_an_object():
    assert make("local", problem="poisson").problem == make("local", problem=Poisson()).problem
    with pytest.raises(TwoscaleError, match="no problem is called 'heat'"):
        make("local", problem="heat")


def test_a_single_patch_has_no_seams(arrays):
    x, u, new, truth = arrays
    metrics = make("local", patches=1).fit(x, u).evaluate(new, truth)
    assert metrics["value_jump"] is None
    assert metrics["mre"] > 0


def test_retained_dimensions(fitted):
    kept = fitted["two-scale"].retained
    assert kept["output"]["ranks"]["coarse"] == [4]
    assert kept["output"]["code"] == 4 + sum(kept["output"]["ranks"]["residual"])
    assert kept["input"]["code"] == sum(kept["input"]["ranks"]["pca"])
    assert fitted["refinement"].retained == fitted["local"].retained
    assert fitted["fno"].retained == {}


def test_the_equation_of_the_pairs_can_be_given_for_an_evaluation(fitted, arrays):
    x, u, new, truth = arrays
    unknown = make("local", seed=2).fit(x, u)
    assert unknown.evaluate(new, truth)["residual_rms"] is None
    told = unknown.with_problem(Poisson()).evaluate(new, truth)["residual_rms"]
    assert told == fitted["local"].evaluate(new, truth)["residual_rms"] > 0
    assert unknown.problem is None


# CUDA


@pytest.mark.gpu
@any_method
def test_cuda_fits_repeat_themselves_and_move_to_the_cpu(method, arrays, tmp_path):
    x, u, new, truth = arrays
    settings = TINY[method] | {"device": "cuda", "seed": 1}
    one, two = (Surrogate(method, **settings).fit(x, u) for _ in range(2))
    assert one.history_ == two.history_
    prediction = one.predict(new)
    assert isinstance(prediction, np.ndarray)
    np.testing.assert_array_equal(prediction, two.predict(new))
    one.save(tmp_path / "model")
    here = Surrogate.load(tmp_path / "model", device="cpu")
    scale = np.abs(truth).max()
    np.testing.assert_allclose(here.predict(new), prediction, atol=1e-3 * scale)


@pytest.mark.gpu
@any_method
def test_cuda_and_cpu_fit_alike(method, fitted, arrays):
    x, u, new, _ = arrays
    settings = TINY[method] | {"device": "cuda", "seed": 2}
    there = Surrogate(method, **settings).fit(x, u).predict(new)
    here = fitted[method].predict(new)
    assert np.linalg.norm(there - here) < 0.02 * np.linalg.norm(here)
