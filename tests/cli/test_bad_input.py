"""Bad input: one sentence on stderr, exit status 2, no traceback, nothing left behind."""

import json
import shutil

import numpy as np
import pytest

from tests.cli.outcome import refused
from tests.surrogate.sealed import edit_manifest
from twoscale.files.checksums import write_sums
from twoscale.surrogate import METHODS


@pytest.fixture
def damaged(run_folder, tmp_path):
    """A copy of a run that a test may damage."""
    return shutil.copytree(run_folder, tmp_path / "run")


@pytest.fixture
def store(data, tmp_path):
    """A copy of a dataset that a test may damage."""
    return shutil.copytree(data, tmp_path / "d.zarr")


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def wrong_files(tmp_path_factory):
    """A folder of files that are not what a command needs; tests must not write to it."""
    folder = tmp_path_factory.mktemp("wrong")
    values = np.random.default_rng(0).random((12, 8, 8))
    files = {
        "nan": np.full((2, 16, 16), np.nan),
        "channels": np.ones((2, 2, 16, 16)),
        "solid": np.ones((2, 1, 1, 16, 16)),
        "line": np.ones(16),
        "complex": np.ones((2, 16, 16), dtype=complex),
        "large": np.ones((3, 32, 32)),
        "few": values[:3],
        "all": values,
        "infinite": np.where(np.arange(12)[:, None, None] == 4, np.inf, values),
    }
    for name, array in files.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "pairs.npz", coeff=np.ones((3, 8, 8)))
    np.savez(folder / "two.npz", a=np.ones((2, 16, 16)), b=np.ones((2, 16, 16)))
    (folder / "text.npy").write_text("hello")
    (folder / "empty").mkdir()
    return folder


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("check none.zarr", "none.zarr does not exist"),
        ("fit none.zarr --out NEW", "none.zarr does not exist"),
        ("import x.npz --out NEW", "does not exist"),
        ("evaluate none", "is not a folder"),
        ("import pairs.npz --input coeff --output coef --out NEW", "did you mean coeff?"),
        ("import few.npy all.npy --out NEW", "numbers of samples must agree"),
        ("import all.npy infinite.npy --out NEW", "sample 4"),
        ("generate stokes --out NEW", "poisson"),
        ("generate poisson --device cpu:abc --out NEW", "auto, cpu or cuda"),
        ("demo --device cuda:9 --out NEW", "no device cuda:9 here"),
        ("evaluate RUN --device tpu", "auto, cpu or cuda"),
        ("fit DATA --device tpu --out NEW", "auto, cpu or cuda"),
        ("fit DATA --seed 99999999999999999999 --out NEW", "the seed must be"),
        ("fit DATA --method threescale --out NEW", ", ".join(METHODS)),
        ("fit DATA --method local --set seed=3 --out NEW", "'seed' is not a setting"),
        ("fit DATA --out RUN", "exists already"),
        ("fit DATA --out text.npy/r", "cannot write"),
        ("generate poisson --out text.npy/d", "cannot write"),
        ("predict RUN large.npy --out NEW", "these are 32x32 fields"),
        ("predict RUN nan.npy --out NEW", "NaN or infinite"),
        ("predict RUN channels.npy --out NEW", "these are 2x16x16 fields"),
        ("predict RUN solid.npy --out NEW", "three dimensions"),
        ("predict RUN line.npy --out NEW", "(samples, height, width)"),
        ("predict RUN complex.npy --out NEW", "real numbers"),
        ("predict RUN text.npy --out NEW", "not a readable npy file"),
        ("predict RUN none.npy --out NEW", "none.npy does not exist"),
        ("predict RUN two.npz --out NEW", "that are input"),
        ("predict RUN empty --out NEW", "is an empty folder"),
    ],
)
def test_what_is_refused(
    twoscale, data, run_folder, wrong_files, tmp_path, monkeypatch, command, words
):
    places = {"DATA": data, "RUN": run_folder, "NEW": tmp_path / "new"}
    monkeypatch.chdir(wrong_files)
    refused(twoscale(*(places.get(word, word) for word in command.split())), words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("coarse_factor=9", ("coarse stage: factor", "between 1 and 8", "got 9")),
        ("coarse_factor=1", ("256 values for 96 fields", "at least 2")),
        ("patches=4x9", ("16 nodes", "1 to 8 patches", "got 9")),
        ("epochs=many", ("epochs",)),
        ("epoch=3", ("epochs",)),
        ("epochs", ("key=value",)),
    ],
)
def test_settings_that_cannot_be(twoscale, data, tmp_path, setting, words):
    named = ("--method", "two-scale", "--set", setting)
    refused(twoscale("fit", data, *named, "--out", tmp_path / "r"), *words)
    assert list(tmp_path.iterdir()) == []


def test_fourier_modes_that_the_grid_lacks_are_left_out(twoscale, data, tmp_path):
    arguments = ("--method", "fno", "--set", "width=2", "--set", "epochs=1", "--json")
    found = []
    for modes in (12, 1000):
        out = ("--set", f"modes={modes}", "--out", tmp_path / str(modes))
        found.append(json.loads(twoscale("fit", data, *arguments, *out).out))
    assert found[0]["parameters"] == found[1]["parameters"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("manifest.json", "{", "is damaged"),
        ("manifest.json", "{}", "not a twoscale surrogate's manifest"),
        ("manifest.json", None, "has no manifest.json"),
        ("weights.safetensors", "nothing", "is damaged"),
        ("weights.safetensors", None, "does not exist"),
        ("config.json", "[]", "should hold a JSON object"),
        ("config.json", "{}", "is damaged"),
        ("split.json", "[]", "should hold a JSON object"),
        ("split.json", "{}", "is damaged"),
    ],
)
def test_a_damaged_run(twoscale, damaged, name, text, words):
    if text is None:
        (damaged / name).unlink()
    else:
        (damaged / name).write_text(text)
    refused(twoscale("evaluate", damaged), name, words)


def test_entries_of_the_wrong_type(twoscale, damaged):
    edit(damaged / "config.json", lambda content: content.update(dataset=3))
    refused(twoscale("evaluate", damaged), "config.json is damaged", "dataset")
    edit_manifest(damaged, lambda content: content.update(timings=3))
    refused(twoscale("evaluate", damaged), "has a damaged manifest")


def test_a_dataset_that_moved_or_changed(twoscale, damaged, tmp_path):
    gone = tmp_path / "gone.zarr"
    edit(damaged / "config.json", lambda content: content["dataset"].update(path=str(gone)))
    refused(twoscale("evaluate", damaged), "config.json is damaged", "SHA256SUMS")
    write_sums(damaged)
    refused(twoscale("evaluate", damaged), "gone.zarr does not exist")
    made = ("--resolution", 16, "--samples", 12, "--out", gone)
    assert twoscale("generate", "poisson", *made).status == 0
    refused(twoscale("evaluate", damaged), "has changed since")


@pytest.mark.parametrize("damage", ["a lost file", "one byte", "nonsense"])
def test_a_fit_on_a_damaged_store(twoscale, store, tmp_path, damage):
    chunk = store / "output" / "c" / "0" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "a lost file":
        chunk.unlink()
    else:
        chunk.write_bytes(content if damage == "one byte" else b"nonsense")
    outcome = twoscale("fit", store, "--set", "epochs=1", "--out", tmp_path / "runs" / "r")
    refused(outcome, "is damaged", "output")
    assert twoscale("check", store).status == 2
    assert list(tmp_path.iterdir()) == [store]


def test_a_dataset_that_does_not_describe_itself(twoscale, store, tmp_path):
    edit(store / "zarr.json", lambda content: content["attributes"].pop("distribution"))
    for command in (("fit", store, "--out", tmp_path / "r"), ("check", store)):
        refused(twoscale(*command), "is damaged", "description")
    (store / "zarr.json").write_text("{")
    refused(twoscale("check", store), "not a readable Zarr group")
    assert list(tmp_path.iterdir()) == [store]


def test_a_failed_fit_leaves_nothing(twoscale, data, tmp_path, monkeypatch):
    monkeypatch.setattr("twoscale.training.loop.mean_loss", lambda *a: float("nan"))
    settings = ("--method", "two-scale", "--set", "learning_rate=10", "--set", "epochs=1")
    refused(twoscale("fit", data, *settings, "--out", tmp_path / "r"), "diverged")
    assert list(tmp_path.iterdir()) == []
