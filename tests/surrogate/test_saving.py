"""Surrogates as folders: the same bits again, and damage that is told."""

import json
import subprocess
import sys
from copy import deepcopy
from functools import partial

import numpy as np
import pytest

from tests.surrogate.sealed import edit_manifest
from tests.surrogate.tiny import make
from twoscale import METHODS, Darcy, Poisson, Surrogate, TwoscaleError
from twoscale.problems import PROBLEMS
from twoscale.surrogate import artifact

any_method = pytest.mark.parametrize("method", METHODS)


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
    assert loaded.input_space_ == loaded.output_space_ == fitted[method].output_space_
    assert loaded.ranks_ == (3, 3)
    assert loaded.parts.describe() == fitted[method].parts.describe()
    assert repr(loaded) == repr(fitted[method])
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
    assert manifest["format_version"] == 4
    assert manifest["method"] == "two-scale"
    assert [(one["height"], one["width"]) for one in manifest["spaces"]] == [(16, 16)] * 2
    assert manifest["ranks"] == [3, 3]
    assert manifest["problem"]["name"] == "poisson"
    assert manifest["parts"]["outputs"]["part"] == "two-scale"
    assert manifest["parts"]["predictor"]["part"] == "mlp"
    assert manifest["seed"] == 2
    assert manifest["training_samples"] == 144
    assert manifest["settings"]["coarse_components"] == 4
    assert manifest["retained"]["output"]["ranks"]["coarse"] == [4]
    assert set(manifest["provenance"]) >= {"twoscale", "torch", "python", "device", "commit"}
    assert "pca_coarse" in manifest["timings"]


def test_a_problem_comes_back_with_its_parameters(arrays, tmp_path):
    x, u, new, truth = arrays
    problem = Darcy(high=100, low=1)
    surrogate = make("local", problem=problem, predictor="affine").fit(x, u)
    surrogate.save(tmp_path / "s")
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert manifest["problem"]["parameters"].items() >= {"high": 100, "low": 1}.items()
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    assert loaded.problem == problem
    assert loaded.problem != Darcy()
    one, two = (each.evaluate(new, truth)["residual_rms"] for each in (surrogate, loaded))
    assert one == two


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


FILES = {
    "no folder": (lambda f: [p.unlink() for p in f.iterdir()] and f.rmdir(), "is not a folder"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "has no manifest.json: expected a"),
    "half a manifest": (
        lambda f: (f / "manifest.json").write_text('{"format": '),
        "manifest.json is damaged or not JSON",
    ),
    "no weights": (lambda f: (f / "weights.safetensors").unlink(), "safetensors does not exist"),
}
MANIFESTS = {
    "another format": (lambda m: m.update(format="x"), "is not a twoscale surrogate's manifest"),
    "another version": (lambda m: m.update(format_version=99), "version 99; .* version 4"),
    "no spaces": (lambda m: m.pop("spaces"), r"KeyError\('spaces'\)"),
    "a grid of text": (lambda m: m["spaces"][1].update(height="16"), "whole numbers of nodes"),
    "a grid of fractions": (lambda m: m["spaces"][1].update(height=16.0), "whole numbers of nodes"),
    "a grid beyond all memory": (
        lambda m: m["spaces"][1].update(height=10**6, width=10**6),
        "there is not enough memory for fields of",
    ),
    "channels beyond all memory": (
        lambda m: m.update(ranks=[4, 3]) or m["spaces"][0].update(channels=10**12),
        "there is not enough memory for fields of",
    ),
    "ranks that do not fit": (lambda m: m.update(ranks=[3, 2]), "16x16 do not have 2 axes"),
    "no predictor": (lambda m: m["parts"].pop("predictor"), r"KeyError\('predictor'\)"),
    "an unknown part": (
        lambda m: m["parts"]["outputs"].update(part="magic"),
        "no Representation is called 'magic': known are .*two-scale",
    ),
    "a part of another kind": (
        lambda m: m["parts"]["outputs"].update(part="mlp"),
        "no Representation is called 'mlp'",
    ),
    "an unknown argument": (
        lambda m: m["parts"]["predictor"].update(colour="red"),
        "'mlp' cannot be made with .*colour",
    ),
    "layers without end": (
        lambda m: m["parts"]["predictor"].update(hidden_layers=10**9),
        "do not fit hidden_layers=1000000000",
    ),
    "layers beyond all memory": (
        lambda m: m["parts"]["predictor"].update(hidden_width=10**6),
        "the weights do not fit",
    ),
    "no settings": (lambda m: m.update(settings=None), "damaged manifest: TypeError"),
    "a setting out of its range": (
        lambda m: m["settings"].update(hidden_layers=10**6),
        "hidden_layers must be .* at most 1000",
    ),
    "an unknown setting": (lambda m: m["settings"].update(colour="red"), "no setting 'colour'"),
    "an unknown method": (lambda m: m.update(method="magic"), "no method is called 'magic'"),
    "another grid": (lambda m: m["spaces"][0].update(height=24, width=32), "do not fit"),
    "timings that are none": (lambda m: m.update(timings=3), "damaged manifest: AttributeError"),
    "a seed that is no number": (lambda m: m.update(seed="one"), "seed must be a whole number"),
    "weights of another network": (
        lambda m: m["parts"]["predictor"].update(hidden_width=9),
        "the weights do not fit the model",
    ),
}
DAMAGE = FILES | {
    name: (partial(edit_manifest, change=change), message)
    for name, (change, message) in MANIFESTS.items()
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
    with pytest.raises(TwoscaleError, match="belongs to another surrogate"):
        Surrogate.load(copy, device="cpu")


def test_parameters_that_were_channels_are_refused(arrays, tmp_path):
    x, u = arrays[:2]
    surrogate = make("global", predictor="affine").fit(x, u, parameters=u[:, 3, :2])
    state = surrogate.operator_.state_dict()
    old = {name: value for name, value in state.items() if "scalars." not in name}
    surrogate.operator_.state_dict = lambda: old
    surrogate.save(tmp_path / "s")
    with pytest.raises(TwoscaleError, match="parameters as channels: fit it again"):
        Surrogate.load(tmp_path / "s", device="cpu")


def test_a_problem_of_ones_own_is_given_again_at_loading(fitted, tmp_path, own_parts):
    class Heat(Poisson):
        name = "heat"

    surrogate = fitted["local"]
    known, surrogate.problem = surrogate.problem, Heat()
    try:
        surrogate.save(tmp_path / "s")
    finally:
        surrogate.problem = known
    assert Surrogate.load(tmp_path / "s").problem.name == "heat"
    del PROBLEMS["heat"]  # as in another process
    assert Surrogate.load(tmp_path / "s").problem is None
    assert Surrogate.load(tmp_path / "s", problem=Heat()).problem.name == "heat"


def test_weights_that_are_not_finite_are_refused(fitted, tmp_path):
    broken = deepcopy(fitted["local"])
    next(broken.operator_.parameters()).data[0] = float("nan")
    broken.save(tmp_path / "broken")
    with pytest.raises(TwoscaleError, match=r"weights .* NaN or infinite: the artifact is damaged"):
        Surrogate.load(tmp_path / "broken")
