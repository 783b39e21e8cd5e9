import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from tests.representation.contract import Chunks
from tests.surrogate.tiny import RECORD, TINY
from twoscale import METHODS, Poisson, Surrogate, TwoscaleError
from twoscale.surrogate import artifact

any_method = pytest.mark.parametrize("method", METHODS)


def make(method, **options):
    return Surrogate(method, device="cpu", **(TINY[method] | options))


@pytest.fixture(scope="module")
def arrays(poisson16):
    """Training inputs and outputs, new inputs and outputs, as NumPy arrays."""
    x, u = (fields.numpy() for fields in poisson16)
    return x[:160], u[:160], x[160:], u[160:]


@pytest.fixture(scope="module")
def fitted(arrays):
    """Every method, fitted with its equation known."""
    x, u, _, _ = arrays
    return {method: make(method, problem="poisson", seed=2).fit(x, u) for method in METHODS}


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    """Every fitted surrogate as a folder."""
    root = tmp_path_factory.mktemp("saved")
    for method, surrogate in fitted.items():
        surrogate.save(root / method)
    return root


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
    x, u, new, truth = (torch.from_numpy(array) for array in arrays)
    surrogate = make("two-scale").fit(Chunks(x), Chunks(u), validation=(Chunks(new), Chunks(truth)))
    metrics = surrogate.evaluate(Chunks(new), Chunks(truth))
    assert metrics["samples"] == 40
    assert metrics["mre"] == pytest.approx(
        surrogate.evaluate(new.numpy(), truth.numpy())["mre"], rel=1e-5
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
    assert np.isnan(metrics["value_jump"])
    assert metrics["mre"] > 0


def test_retained_dimensions(fitted):
    kept = fitted["two-scale"].retained
    assert kept["output"]["ranks"]["coarse"] == [4]
    assert kept["output"]["code"] == 4 + sum(kept["output"]["ranks"]["residual"])
    assert kept["input"]["code"] == sum(kept["input"]["ranks"]["pca"])
    assert fitted["refinement"].retained == fitted["local"].retained
    assert fitted["fno"].retained == {}


# Saving and loading

LOAD_AND_PREDICT = """
import sys
import numpy as np
from pathlib import Path
from twoscale import Surrogate

root = Path(sys.argv[1])
new = np.load(root / "new.npy")
predictions = {
    folder.name: Surrogate.load(folder, device="cpu").predict(new)
    for folder in root.iterdir() if folder.is_dir()
}
np.savez(root / "predictions.npz", **predictions)
"""


@pytest.fixture(scope="module")
def predictions_elsewhere(saved, arrays):
    """Predictions of all saved surrogates, made by a new process."""
    np.save(saved / "new.npy", arrays[2])
    subprocess.run([sys.executable, "-c", LOAD_AND_PREDICT, str(saved)], check=True)
    with np.load(saved / "predictions.npz") as archive:
        return dict(archive)


@any_method
def test_a_new_process_predicts_the_same_bits(method, fitted, predictions_elsewhere, arrays):
    np.testing.assert_array_equal(predictions_elsewhere[method], fitted[method].predict(arrays[2]))


@any_method
def test_a_loaded_surrogate_is_the_saved_one(method, fitted, saved, arrays):
    _, _, new, truth = arrays
    loaded = Surrogate.load(saved / method, device="cpu")
    assert loaded.method == method
    assert loaded.settings == fitted[method].settings
    assert loaded.seed == 2
    assert loaded.grid_ == fitted[method].grid_
    assert loaded.problem == Poisson()
    assert loaded.retained == fitted[method].retained
    one, two = fitted[method].evaluate(new, truth), loaded.evaluate(new, truth)
    timings = one.pop("timings"), two.pop("timings")
    assert one == two
    assert set(timings[0]) == set(timings[1])


@any_method
def test_saving_again_writes_the_same_weights(method, saved, tmp_path):
    Surrogate.load(saved / method, device="cpu").save(tmp_path / "again")
    name = "weights.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (saved / method / name).read_bytes()


@any_method
def test_the_folder_holds_json_and_safetensors_only(method, saved):
    names = {path.name for path in (saved / method).iterdir()}
    assert names == {"manifest.json", "weights.safetensors"}


def test_the_manifest_tells_how_it_was_made(saved):
    manifest = json.loads((saved / "two-scale" / "manifest.json").read_text())
    assert manifest["format"] == "twoscale-surrogate"
    assert manifest["format_version"] == 1
    assert manifest["method"] == "two-scale"
    assert manifest["grid"] == {"height": 16, "width": 16}
    assert manifest["problem"] == "poisson"
    assert manifest["seed"] == 2
    assert manifest["training_samples"] == 144
    assert manifest["settings"]["coarse_components"] == 4
    assert manifest["retained"]["output"]["ranks"]["coarse"] == [4]
    assert set(manifest["provenance"]) >= {"twoscale", "torch", "python", "device", "commit"}
    assert "pca_coarse" in manifest["timings"]


def test_an_existing_folder_is_not_overwritten_unasked(fitted, tmp_path):
    fitted["local"].save(tmp_path / "x")
    with pytest.raises(TwoscaleError, match="exists already"):
        fitted["local"].save(tmp_path / "x")
    fitted["global"].save(tmp_path / "x", overwrite=True)
    assert Surrogate.load(tmp_path / "x").method == "global"


@pytest.mark.parametrize("step", ["save_file", "write_json"])
def test_nothing_is_left_behind_if_saving_fails(fitted, tmp_path, monkeypatch, step):
    def full_disk(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(artifact, step, full_disk)
    with pytest.raises(TwoscaleError, match=r"cannot write .*x: no space left"):
        fitted["local"].save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of one saved surrogate, to be damaged."""
    target = tmp_path / "copy"
    target.mkdir()
    for path in (saved / "two-scale").iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def edit(folder, change):
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


DAMAGE = {
    "no folder": (lambda f: [p.unlink() for p in f.iterdir()] and f.rmdir(), "is not a folder"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json does not exist"),
    "half a manifest": (
        lambda f: (f / "manifest.json").write_text('{"format": '),
        "manifest.json is damaged or not JSON",
    ),
    "another format": (
        lambda f: edit(f, lambda m: m.update(format="x")),
        "is not a twoscale surrogate's manifest",
    ),
    "another version": (
        lambda f: edit(f, lambda m: m.update(format_version=99)),
        "has format version 99; this twoscale reads version 1",
    ),
    "no grid": (
        lambda f: edit(f, lambda m: m.pop("grid")),
        r"has a damaged manifest: KeyError\('grid'\)",
    ),
    "a grid of text": (
        lambda f: edit(f, lambda m: m["grid"].update(height="16")),
        "has a damaged manifest: TypeError",
    ),
    "no settings": (
        lambda f: edit(f, lambda m: m.update(settings=None)),
        "has a damaged manifest: TypeError",
    ),
    "an unknown setting": (
        lambda f: edit(f, lambda m: m["settings"].update(colour="red")),
        "method two-scale with predictor=mlp has no setting 'colour'",
    ),
    "an unknown method": (
        lambda f: edit(f, lambda m: m.update(method="magic")),
        "no method is called 'magic'",
    ),
    "another grid": (
        lambda f: edit(f, lambda m: m.update(grid={"height": 24, "width": 32})),
        "manifest and weights do not fit together",
    ),
    "timings that are none": (
        lambda f: edit(f, lambda m: m.update(timings=3)),
        "has a damaged manifest: TypeError",
    ),
    "a seed that is no number": (
        lambda f: edit(f, lambda m: m.update(seed="one")),
        "the seed must be a whole number",
    ),
    "no weights": (
        lambda f: (f / "weights.safetensors").unlink(),
        "weights.safetensors does not exist",
    ),
    "half the weights": (
        lambda f: (f / "weights.safetensors").write_bytes(
            (f / "weights.safetensors").read_bytes()[:1000]
        ),
        "weights.safetensors is damaged",
    ),
    "weights of another network": (
        lambda f: edit(f, lambda m: m["settings"].update(hidden_width=9)),
        "the weights do not fit the model",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told(copy, damage):
    act, message = DAMAGE[damage]
    act(copy)
    with pytest.raises(TwoscaleError, match=message):
        Surrogate.load(copy, device="cpu")


def test_weights_of_another_method_are_told(copy, saved):
    weights = (saved / "global" / "weights.safetensors").read_bytes()
    (copy / "weights.safetensors").write_bytes(weights)
    with pytest.raises(TwoscaleError, match="the weights lack"):
        Surrogate.load(copy, device="cpu")


# Bad input


def test_an_unfitted_surrogate_says_so(arrays, tmp_path):
    _, _, new, truth = arrays
    surrogate = make("local")
    for act in (
        lambda: surrogate.predict(new),
        lambda: surrogate.evaluate(new, truth),
        lambda: surrogate.save(tmp_path / "x"),
    ):
        with pytest.raises(TwoscaleError, match="not fitted yet: call fit or load first"):
            act()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(2, 16, 17), (2, 32, 32)])
def test_another_grid_is_refused(fitted, shape):
    fields = np.zeros(shape, dtype=np.float32)
    message = f"fitted on 16x16 fields, these are {shape[1]}x{shape[2]}"
    with pytest.raises(TwoscaleError, match=message):
        fitted["local"].predict(fields)
    with pytest.raises(TwoscaleError, match=message):
        fitted["local"].evaluate(fields, fields)


BAD_ARRAYS = [
    (np.zeros((16, 16)), r"shape \(samples, height, width\), got \(16, 16\)"),
    (np.zeros((0, 16, 16)), r"shape \(samples, height, width\), got \(0, 16, 16\)"),
    (np.zeros((2, 1, 16, 16)), r"shape \(samples, height, width\), got \(2, 1, 16, 16\)"),
    (np.full((2, 16, 16), np.nan), "contain NaN or infinite values"),
    (np.full((2, 16, 16), np.inf), "contain NaN or infinite values"),
    (np.zeros((2, 16, 16), dtype=complex), "must be real numbers, got dtype complex128"),
    (torch.zeros(2, 16, 16, dtype=torch.complex64), "must be real numbers, got dtype torch.comple"),
    (np.full((2, 16, 16), "a"), "must be real numbers, got dtype <U1"),
    ([[1.0, 2.0]], "must be an array, got list"),
    (None, "must be an array, got NoneType"),
]


@pytest.mark.parametrize(("array", "message"), BAD_ARRAYS, ids=[m[-25:] for _, m in BAD_ARRAYS])
def test_bad_arrays_are_refused(fitted, array, message):
    with pytest.raises(TwoscaleError, match="the input fields " + ".*" + message):
        fitted["local"].predict(array)


def test_one_bad_value_anywhere_in_the_training_set_is_found(arrays):
    x, u, _, _ = arrays
    bad = u.copy()
    bad[77, 3, 5] = np.nan
    with pytest.raises(TwoscaleError, match="the output fields contain NaN or infinite values"):
        make("local").fit(x, bad)
    bad = x.copy()
    bad[77, 3, 5] = -np.inf
    with pytest.raises(TwoscaleError, match="the input fields contain NaN or infinite values"):
        make("local").fit(bad, u)


def test_unequal_numbers_of_fields_are_refused(arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="there are 160 input fields but 150 output fields"):
        make("local").fit(x, u[:150])


def test_inputs_and_outputs_on_different_grids_are_refused(arrays):
    x, u, _, _ = arrays
    message = re.escape("training inputs have shape (144, 16, 16), outputs (144, 8, 16): they must")
    with pytest.raises(TwoscaleError, match=message):
        make("local").fit(x, u[:, ::2])


def test_validation_on_another_grid_is_refused(arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="training fields are 16x16, validation fields are not"):
        make("local").fit(x, u, validation=(x[:, ::2], u[:, ::2]))


def test_too_few_pairs_are_refused(arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="needs at least 4 pairs of fields, got 3"):
        make("local").fit(x[:3], u[:3])


def test_a_grid_too_small_is_refused():
    fields = np.random.default_rng(0).random((20, 6, 6))
    with pytest.raises(TwoscaleError, match="at least 8 nodes per side, got 6x6"):
        make("global").fit(fields, fields)


@any_method
def test_patches_that_do_not_divide_are_refused(method, arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="5 patches do not divide a height of 16"):
        make(method, patches=5).fit(x, u)


def test_illegal_coarse_grids_are_refused(arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="3 does not divide 16x16"):
        make("two-scale", coarse_factor=3).fit(x, u)
    with pytest.raises(TwoscaleError, match="factor 4 gives 16 nodes for 16 fields"):
        make("two-scale").fit(x[:18], u[:18])


@pytest.mark.parametrize("seed", [-1, 1.5, "0"])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(TwoscaleError, match="the seed must be a whole number from 0"):
        Surrogate(seed=seed)


def test_a_problem_of_ones_own_is_given_again_at_loading(fitted, tmp_path):
    class Heat(Poisson):
        name = "heat"

    surrogate = fitted["local"]
    known, surrogate.problem = surrogate.problem, Heat()
    try:
        surrogate.save(tmp_path / "s")
    finally:
        surrogate.problem = known
    assert Surrogate.load(tmp_path / "s").problem is None
    assert Surrogate.load(tmp_path / "s", problem=Heat()).problem.name == "heat"


def test_read_only_arrays_are_taken_without_complaint(fitted, arrays, recwarn):
    inputs = arrays[0][:3].copy()
    inputs.flags.writeable = False
    fitted["local"].predict(inputs)
    assert not recwarn.list


def test_unknown_names_are_refused_at_once():
    with pytest.raises(TwoscaleError, match="no method is called 'magic'"):
        Surrogate("magic")
    with pytest.raises(TwoscaleError, match="did you mean epochs"):
        Surrogate("local", epoch=3)
    with pytest.raises(TwoscaleError, match="the device is auto, cpu or cuda, got 'tpu'"):
        Surrogate("local", device="tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_gpu_is_told():
    assert Surrogate("local").device.type == "cpu"
    with pytest.raises(TwoscaleError, match="no device cuda here: use --device cpu or auto"):
        Surrogate("local", device="cuda")


@pytest.mark.parametrize("name", ["cpu:abc", "cuda:abc", "cpu:-1", "mps", ""])
def test_a_device_that_is_none_is_told(name):
    with pytest.raises(TwoscaleError, match=f"the device is auto, cpu or cuda, got '{name}'"):
        Surrogate("local", device=name)


@pytest.mark.parametrize("name", ["cpu:1", "cuda:99"])
def test_a_device_number_that_is_not_here_is_told(name):
    with pytest.raises(TwoscaleError, match=f"no device {name} here: use --device cpu or auto"):
        Surrogate("local", device=name)


@pytest.mark.parametrize("seed", [0, 2**63 - 1, np.int64(5), np.uint8(7)])
def test_whole_numbers_are_seeds(seed):
    assert Surrogate("local", seed=seed).seed == int(seed)
    assert type(Surrogate("local", seed=seed).seed) is int


@pytest.mark.parametrize("seed", [-1, 2**63, True, False, 1.0, "1", None])
def test_nothing_else_is_a_seed(seed):
    with pytest.raises(TwoscaleError, match="the seed must be a whole number from 0"):
        Surrogate("local", seed=seed)


@pytest.mark.parametrize("batch_size", [0, -3])
def test_a_batch_holds_at_least_one_field(fitted, arrays, batch_size):
    with pytest.raises(TwoscaleError, match=f"at least 1, got {batch_size}"):
        fitted["local"].predict(arrays[2], batch_size=batch_size)


def test_the_equation_of_the_pairs_can_be_given_for_an_evaluation(fitted, arrays):
    x, u, new, truth = arrays
    unknown = make("local", seed=2).fit(x, u)
    assert unknown.evaluate(new, truth)["residual_rms"] is None
    told = unknown.with_problem(Poisson()).evaluate(new, truth)["residual_rms"]
    assert told == fitted["local"].evaluate(new, truth)["residual_rms"] > 0
    assert unknown.problem is None


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


# Predictors and symmetries


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
    options |= {"solver": "covariance", "epochs": 2}
    here, there = (
        Surrogate("two-scale", device=device, **TINY["two-scale"] | options).fit(x, u)
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
    wanted = r"needs a known problem: .* \(none, mirrors, square\)"
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


def test_a_fit_whose_weights_are_not_finite_is_refused(arrays):
    x, u, *_ = arrays
    surrogate = make("local", predictor="affine")
    fitting = surrogate.begin(x, u)
    fitting.operator.fit(fitting.training, fitting.validation, fitting.context)
    fitting.operator.predictor.network[0].weight.data[0, 0] = torch.nan
    wanted = "the fit gave predictor.network.0.weight values .* a larger ridge .* smaller learning"
    with pytest.raises(TwoscaleError, match=wanted):
        surrogate.finish(fitting.operator, fitting.shape, fitting.context)


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
