"""Bad input: one sentence on stderr, exit status 2, no traceback, nothing left behind."""

import json
import shutil

import h5py
import numpy as np
import pytest

from tests.cli.outcome import refused
from tests.surrogate.sealed import edit_manifest
from twoscale.files.checksums import write_sums
from twoscale.surrogate import METHODS


@pytest.fixture
def damaged(run_folder, tmp_path):
    """A copy of a run that a test may damage."""
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    return copy


@pytest.mark.parametrize("command", ["check", "fit"])
def test_missing_dataset(twoscale, tmp_path, command):
    extra = ("--out", tmp_path / "r") if command == "fit" else ()
    refused(twoscale(command, tmp_path / "none.zarr", *extra), "none.zarr does not exist")
    assert list(tmp_path.iterdir()) == []


def test_missing_import_file(twoscale, tmp_path):
    refused(twoscale("import", tmp_path / "x.npz", "--out", tmp_path / "d"), "does not exist")
    assert list(tmp_path.iterdir()) == []


def test_wrong_key(twoscale, tmp_path):
    np.savez(tmp_path / "f.npz", coeff=np.ones((3, 8, 8)))
    arguments = ("--input", "coeff", "--output", "coef", "--out", tmp_path / "d")
    words = ("no array 'coef'", "did you mean coeff?", "it holds coeff (3, 8, 8)")
    refused(twoscale("import", tmp_path / "f.npz", *arguments), *words)


def test_mismatched_shapes(twoscale, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 8, 8)))
    np.save(tmp_path / "u.npy", np.ones((4, 8, 8)))
    outcome = twoscale("import", tmp_path / "x.npy", tmp_path / "u.npy", "--out", tmp_path / "d")
    refused(outcome, "numbers of samples must agree", "'output' 4 samples of 8x8")
    assert not list(tmp_path.glob("d*"))


def test_nan_in_import(twoscale, tmp_path):
    values = np.random.default_rng(0).random((12, 8, 8))
    np.save(tmp_path / "x.npy", values)
    values[4, 1, 1] = np.inf
    np.save(tmp_path / "u.npy", values)
    outcome = twoscale("import", tmp_path / "x.npy", tmp_path / "u.npy", "--out", tmp_path / "d")
    refused(outcome, "NaN or infinite", "sample 4")
    assert not list(tmp_path.glob("d*"))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("coarse_factor=9", ("coarse_factor) must lie between 1 and 8", "16x16, got 9")),
        ("coarse_factor=1", ("fewer values than", "256 values for 96 fields", "at least 2")),
        ("patches=9", ("a height of 16 nodes can be cut into 1 to 8 patches, got 9",)),
        ("patches=4x9", ("a width of 16 nodes can be cut into 1 to 8 patches, got 9",)),
        ("patches=four", ("patches must be a count",)),
        ("epochs=0", ("epochs must be a whole number of at least 1, got '0'",)),
        ("epochs=many", ("epochs must be",)),
        ("input_variance=1.5", ("input_variance must be a fraction",)),
        ("learning_rate=-1", ("learning_rate must be a positive number",)),
        ("objective=best", ("objective must be one of vector, block-balanced",)),
        ("solver=magic", ("solver must be one of full",)),
        ("epoch=3", ("no setting 'epoch'", "did you mean epochs")),
        ("output_variance=0.9", ("no setting 'output_variance'",)),
        ("epochs", ("key=value",)),
    ],
)
def test_settings_that_cannot_be(twoscale, data, tmp_path, setting, words):
    named = ("--method", "two-scale", "--set", setting)
    outcome = twoscale("fit", data, *named, "--out", tmp_path / "r")
    refused(outcome, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("setting", ["coarse_factor=5", "patches=3", "patches=4x5"])
def test_settings_need_not_divide_the_grid(twoscale, data, tmp_path, setting):
    named = ("--method", "two-scale", "--set", "epochs=1", "--set", setting)
    outcome = twoscale("fit", data, *named, "--out", tmp_path / "r")
    assert outcome.status == 0, outcome.err


def test_fourier_modes_that_the_grid_lacks_are_left_out(twoscale, data, tmp_path):
    arguments = ("--method", "fno", "--set", "width=2", "--set", "epochs=1", "--json")
    found = []
    for modes in (12, 1000):
        out = ("--set", f"modes={modes}", "--out", tmp_path / str(modes))
        found.append(json.loads(twoscale("fit", data, *arguments, *out).out))
    assert found[0]["parameters"] == found[1]["parameters"]


def test_unknown_method(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--method", "threescale", "--out", tmp_path / "r")
    refused(outcome, "no method is called 'threescale'", *METHODS)


def test_unknown_problem(twoscale, tmp_path):
    refused(twoscale("generate", "stokes", "--out", tmp_path / "d"), "stokes", "darcy", "poisson")


def test_unknown_device(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--device", "tpu", "--out", tmp_path / "r")
    refused(outcome, "auto, cpu or cuda")


def test_existing_output(twoscale, data, run_folder):
    before = sorted(path.name for path in run_folder.iterdir())
    refused(twoscale("fit", data, "--out", run_folder), "exists already", "overwrite")
    assert sorted(path.name for path in run_folder.iterdir()) == before


def test_unwritable_output(twoscale, data, tmp_path):
    (tmp_path / "file").write_text("")
    refused(twoscale("fit", data, "--out", tmp_path / "file" / "r"), "cannot write")
    refused(twoscale("generate", "poisson", "--out", tmp_path / "file" / "d"), "cannot write")


def test_another_grid(twoscale, run_folder, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 32, 32)))
    outcome = twoscale("predict", run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy")
    refused(outcome, "fitted on inputs of 16x16 fields, these are 32x32 fields")
    other = tmp_path / "o.zarr"
    assert twoscale("generate", "poisson", "--samples", 12, "--out", other).status == 0
    refused(twoscale("evaluate", run_folder, "--data", other), "16x16", "64x64")
    assert not (tmp_path / "p.npy").exists()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full((2, 16, 16), np.nan), "NaN or infinite"),
        (np.ones((2, 2, 16, 16)), "fitted on inputs of 16x16 fields, these are 2x16x16 fields"),
        (np.ones((2, 1, 1, 16, 16)), "fields in three dimensions are not supported"),
        (np.ones(16), "(samples, height, width)"),
        (np.ones((2, 16, 16), dtype=complex), "real numbers"),
    ],
)
def test_bad_input_fields(twoscale, run_folder, tmp_path, values, words):
    np.save(tmp_path / "x.npy", values)
    outcome = twoscale("predict", run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy")
    refused(outcome, words)
    assert not list(tmp_path.glob("p.npy*"))


def test_input_that_is_no_npy(twoscale, run_folder, tmp_path):
    (tmp_path / "x.npy").write_text("hello")
    outcome = twoscale("predict", run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy")
    refused(outcome, "not a readable npy file")
    outcome = twoscale("predict", run_folder, tmp_path / "y.npy", "--out", tmp_path / "p.npy")
    refused(outcome, "y.npy does not exist")


def test_damaged_manifest(twoscale, damaged):
    (damaged / "manifest.json").write_text("{")
    refused(twoscale("evaluate", damaged), "manifest.json is damaged")
    (damaged / "manifest.json").write_text("{}")
    refused(twoscale("evaluate", damaged), "not a twoscale surrogate's manifest")
    (damaged / "manifest.json").unlink()
    refused(twoscale("evaluate", damaged), "has no manifest.json: expected a saved surrogate")


def test_damaged_weights(twoscale, damaged):
    (damaged / "weights.safetensors").write_bytes(b"nothing")
    refused(twoscale("evaluate", damaged), "weights.safetensors is damaged")
    (damaged / "weights.safetensors").unlink()
    refused(twoscale("evaluate", damaged), "weights.safetensors does not exist")


@pytest.mark.parametrize("name", ["config.json", "split.json"])
def test_damaged_run(twoscale, damaged, name):
    (damaged / name).write_text("[]")
    refused(twoscale("evaluate", damaged), f"{name} should hold a JSON object")
    (damaged / name).write_text("{}")
    refused(twoscale("evaluate", damaged), f"{name} is damaged")


def test_run_that_is_none(twoscale, tmp_path):
    refused(twoscale("evaluate", tmp_path / "none"), "is not a folder")


def test_dataset_that_moved_or_changed(twoscale, damaged, tmp_path):
    config = json.loads((damaged / "config.json").read_text())
    config["dataset"]["path"] = str(tmp_path / "gone.zarr")
    (damaged / "config.json").write_text(json.dumps(config))
    refused(twoscale("evaluate", damaged), "config.json is damaged", "SHA256SUMS")
    write_sums(damaged)
    refused(twoscale("evaluate", damaged), "gone.zarr does not exist")
    made = ("--resolution", 16, "--samples", 12, "--out", tmp_path / "gone.zarr")
    assert twoscale("generate", "poisson", *made).status == 0
    refused(twoscale("evaluate", damaged), "has changed since")


def test_damaged_store(twoscale, data, tmp_path):
    copy = tmp_path / "d.zarr"
    shutil.copytree(data, copy)
    (copy / "output" / "c" / "0" / "0" / "0").write_bytes(b"nonsense")
    outcome = twoscale("check", copy)
    assert outcome.status == 2
    assert "checksums" in outcome.err
    refused(twoscale("fit", copy, "--out", tmp_path / "r"), "is damaged", "'output'")
    (copy / "zarr.json").write_text("{")
    refused(twoscale("check", copy), "not a readable Zarr group")
    assert not list(tmp_path.glob("r*"))


def test_a_failed_fit_leaves_nothing(twoscale, data, tmp_path):
    settings = ("--set", "learning_rate=10", "--set", "epochs=1")
    arguments = ("--method", "two-scale", *settings, "--out", tmp_path / "r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twoscale.training.member.mean_loss", lambda *a: float("nan"))
        refused(twoscale("fit", data, *arguments), "diverged")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("array", ["input", "output"])
@pytest.mark.parametrize("damage", ["a lost file", "one byte"])
def test_a_fit_on_a_damaged_store(twoscale, data, tmp_path, array, damage):
    copy = tmp_path / "d.zarr"
    shutil.copytree(data, copy)
    chunk = copy / array / "c" / "0" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    if damage == "one byte":
        content[len(content) // 2] ^= 1
        chunk.write_bytes(content)
    else:
        chunk.unlink()
    outcome = twoscale("fit", copy, "--set", "epochs=1", "--out", tmp_path / "runs" / "r")
    refused(outcome, "is damaged", f"'{array}'" if damage == "one byte" else f"{array}/c/0/0/0")
    assert list(tmp_path.iterdir()) == [copy]


# Mistakes that once showed a traceback


def test_prediction_from_several_arrays_or_none(twoscale, run_folder, tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones((2, 16, 16)), b=np.ones((2, 16, 16)))
    (tmp_path / "empty").mkdir()
    out = ("--out", tmp_path / "p.npy")
    refused(twoscale("predict", run_folder, tmp_path / "x.npz", *out), "that are input")
    refused(
        twoscale("predict", run_folder, tmp_path / "empty", *out),
        "is an empty folder, not a dataset or",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "x.npz"]


def test_a_seed_beyond_all_numbers(twoscale, data, tmp_path):
    seed = ("--seed", "99999999999999999999")
    refused(twoscale("fit", data, *seed, "--out", tmp_path / "r"), "the seed must be")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("device", "words"),
    [("cpu:abc", "the device is auto, cpu or cuda"), ("cuda:9", "no device cuda:9 here")],
)
def test_devices_that_are_none(twoscale, data, run_folder, tmp_path, device, words):
    out = ("--device", device, "--out", tmp_path / "r")
    refused(twoscale("fit", data, *out), words)
    refused(twoscale("generate", "poisson", *out), words)
    refused(twoscale("demo", *out), words)
    refused(twoscale("evaluate", run_folder, "--device", device), words)
    assert list(tmp_path.iterdir()) == []


def test_import_of_a_damaged_hdf5_chunk(twoscale, tmp_path):
    values = np.random.default_rng(0).random((12, 8, 8))
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name in "au":
            file.create_dataset(name, data=values, chunks=(4, 8, 8), compression="gzip")
        place = file["u"].id.get_chunk_info(2)
    with (tmp_path / "f.h5").open("r+b") as file:
        file.seek(place.byte_offset)
        file.write(b"\xff" * place.size)
    arguments = ("--input", "a", "--output", "u", "--out", tmp_path / "d")
    refused(twoscale("import", tmp_path / "f.h5", *arguments), "f.h5 is damaged")
    assert [path.name for path in tmp_path.iterdir()] == ["f.h5"]


def _edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_entries_of_the_wrong_type(twoscale, damaged):
    _edit(damaged / "config.json", lambda content: content.update(dataset=3))
    refused(twoscale("evaluate", damaged), "config.json is damaged: it lacks a proper dataset")
    edit_manifest(damaged, lambda content: content.update(timings=3))
    refused(twoscale("evaluate", damaged), "has a damaged manifest")


def test_a_dataset_that_does_not_describe_itself(twoscale, data, tmp_path):
    copy = tmp_path / "d.zarr"
    shutil.copytree(data, copy)
    _edit(copy / "zarr.json", lambda content: content["attributes"].pop("distribution"))
    words = ("is damaged", "its description has changed")
    refused(twoscale("fit", copy, "--out", tmp_path / "r"), *words)
    refused(twoscale("check", copy), *words)
    assert list(tmp_path.iterdir()) == [copy]
