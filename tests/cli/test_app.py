import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.surrogate.tiny import RECORD
from twoscale import Surrogate, __version__
from twoscale.data import Dataset
from twoscale.run import Run
from twoscale.surrogate import METHODS


def test_version(twoscale):
    assert twoscale("--version") == (0, f"twoscale {__version__}\n", "")


@pytest.mark.parametrize(
    "command", ["demo", "generate", "import", "check", "fit", "evaluate", "predict"]
)
def test_help_has_an_example(twoscale, command):
    outcome = twoscale(command, "--help")
    assert outcome.status == 0
    assert f"twoscale {command}" in " ".join(outcome.out.split())
    assert "Example" in outcome.out


def test_from_generate_to_predict(twoscale, tmp_path):
    data, run, out = tmp_path / "d.zarr", tmp_path / "runs" / "a", tmp_path / "p.npy"
    made = twoscale("generate", "poisson", "--resolution", 16, "--samples", 120, "--out", data)
    assert made.status == 0
    assert "120 pairs of 16x16" in made.out
    checked = twoscale("check", data)
    assert checked.status == 0
    assert "no field occurs twice" in checked.out
    fitted = twoscale("fit", data, "--method", "local", "--set", "epochs=3", "--out", run)
    assert fitted.status == 0
    assert "MRE %" in fitted.out
    evaluated = twoscale("evaluate", run, "--json")
    metrics = json.loads(evaluated.out)
    assert metrics["mre"] == json.loads((run / "metrics.json").read_text())["mre"]
    assert set(metrics) >= RECORD
    inputs = Dataset(data).read("input", 0, 5)
    np.save(tmp_path / "x.npy", inputs)
    assert twoscale("predict", run, tmp_path / "x.npy", "--out", out).status == 0
    assert np.array_equal(np.load(out), Surrogate.load(run).predict(inputs))


def test_a_run_folder_holds_what_is_needed_to_trust_it(twoscale, data, tmp_path):
    run = tmp_path / "r"
    assert twoscale("fit", data, "--set", "epochs=2", "--seed", 3, "--out", run).status == 0
    files = {path.name for path in run.iterdir()}
    assert files == {
        "manifest.json",
        "weights.safetensors",
        "config.json",
        "split.json",
        "history.json",
        "metrics.json",
        "environment.json",
        "figures",
    }
    figures = {path.name for path in (run / "figures").iterdir()}
    assert figures == {"fields.png", "spectrum.png", "density.png", "losses.png"}
    assert all((run / "figures" / name).read_bytes()[:4] == b"\x89PNG" for name in figures)
    config = json.loads((run / "config.json").read_text())
    assert config["seed"] == 3
    assert config["settings"]["epochs"] == 2
    assert config["dataset"]["identity"] == Dataset(data).identity
    assert Run.open(run).identity == Dataset(data).identity
    assert len(json.loads((run / "history.json").read_text())["training"]["training_loss"]) == 2
    assert [len(part) for part in json.loads((run / "split.json").read_text()).values()] == [
        96,
        12,
        12,
    ]
    assert list(tmp_path.iterdir()) == [run]


def test_same_seed_same_run(twoscale, data, tmp_path):
    for name in ("a", "b"):
        arguments = ("--method", "overlap", "--set", "epochs=2", "--out", tmp_path / name)
        assert twoscale("fit", data, *arguments).status == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("a", "b")]
    configs = [(tmp_path / name / "config.json").read_bytes() for name in ("a", "b")]
    assert weights[0] == weights[1]
    assert configs[0] == configs[1]


def test_training_prefix(twoscale, data, tmp_path):
    outcome = twoscale(
        "fit", data, "--set", "epochs=1", "--train-samples", 40, "--out", tmp_path / "r"
    )
    assert outcome.status == 0
    split = json.loads((tmp_path / "r" / "split.json").read_text())
    assert [len(part) for part in split.values()] == [40, 12, 12]


def test_evaluate_on_other_data_uses_all_of_it(twoscale, run_folder, tmp_path):
    other = tmp_path / "o.zarr"
    made = ("--resolution", 16, "--samples", 30, "--seed", 9, "--out", other)
    assert twoscale("generate", "poisson", *made).status == 0
    metrics = json.loads(twoscale("evaluate", run_folder, "--data", other, "--json").out)
    assert metrics["samples"] == 30


def test_predict_of_a_single_field(twoscale, run_folder, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((16, 16)))
    out = tmp_path / "p.npy"
    assert twoscale("predict", run_folder, tmp_path / "x.npy", "--out", out).status == 0
    assert np.load(out).shape == (16, 16)


def test_import_command(twoscale, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "f.npz", k=rng.random((11, 8, 8)), p=rng.random((11, 8, 8)))
    arguments = ("--input", "k", "--output", "p", "--out", tmp_path / "d.zarr")
    assert twoscale("import", tmp_path / "f.npz", *arguments).status == 0
    assert Dataset(tmp_path / "d.zarr").samples == 11


def test_killed_generation_continues(twoscale, tmp_path):
    """A process killed while it writes leaves no dataset; the same command then completes it."""
    out, whole = tmp_path / "d.zarr", tmp_path / "whole.zarr"
    recipe = ["generate", "poisson", "--resolution", "64", "--samples", "8200", "--device", "cpu"]
    command = [sys.executable, "-m", "twoscale", *recipe, "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    log = tmp_path / "d.zarr.partial" / "written.jsonl"
    while process.poll() is None and not (log.exists() and log.stat().st_size):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    written = log.read_text()
    assert written
    assert twoscale(*recipe, "--out", out).status == 0
    assert twoscale(*recipe, "--out", whole).status == 0
    assert _contents(out) == _contents(whole)
    assert len(_contents(out)) > 10
    assert not log.exists()


def _contents(folder):
    """Return the bytes of every file below a folder, by name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# Bad input: one sentence on stderr, exit status 2, no traceback, nothing left behind.


def _refused(outcome, *words):
    assert outcome.status == 2
    assert "Traceback" not in outcome.err + outcome.out
    sentences = [line for line in outcome.err.splitlines() if line.strip()]
    assert len(sentences) == 1, outcome.err
    for word in words:
        assert word in sentences[0]


@pytest.fixture
def damaged(run_folder, tmp_path):
    """A copy of a run that a test may damage."""
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    return copy


@pytest.mark.parametrize("command", ["check", "fit"])
def test_missing_dataset(twoscale, tmp_path, command):
    extra = ("--out", tmp_path / "r") if command == "fit" else ()
    _refused(twoscale(command, tmp_path / "none.zarr", *extra), "none.zarr does not exist")
    assert list(tmp_path.iterdir()) == []


def test_missing_import_file(twoscale, tmp_path):
    _refused(twoscale("import", tmp_path / "x.npz", "--out", tmp_path / "d"), "does not exist")
    assert list(tmp_path.iterdir()) == []


def test_wrong_key(twoscale, tmp_path):
    np.savez(tmp_path / "f.npz", a=np.ones((3, 8, 8)))
    arguments = ("--input", "a", "--output", "u", "--out", tmp_path / "d")
    _refused(twoscale("import", tmp_path / "f.npz", *arguments), "no array 'u'", "it holds a")


def test_mismatched_shapes(twoscale, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 8, 8)))
    np.save(tmp_path / "u.npy", np.ones((3, 8, 9)))
    outcome = twoscale("import", tmp_path / "x.npy", tmp_path / "u.npy", "--out", tmp_path / "d")
    _refused(outcome, "(3, 8, 8)", "(3, 8, 9)", "agree")
    assert not list(tmp_path.glob("d*"))


def test_nan_in_import(twoscale, tmp_path):
    values = np.random.default_rng(0).random((12, 8, 8))
    np.save(tmp_path / "x.npy", values)
    values[4, 1, 1] = np.inf
    np.save(tmp_path / "u.npy", values)
    outcome = twoscale("import", tmp_path / "x.npy", tmp_path / "u.npy", "--out", tmp_path / "d")
    _refused(outcome, "NaN or infinite", "sample 4")
    assert not list(tmp_path.glob("d*"))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("coarse_factor=5", ("must divide the grid", "use one of [1, 2, 4, 8]")),
        ("coarse_factor=1", ("fewer nodes than", "256 nodes for 96 fields", "[2, 4, 8]")),
        ("patches=3", ("3 patches do not divide a height of 16", "[1, 2, 4, 8]")),
        ("patches=4x5", ("5 patches do not divide a width of 16",)),
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
    outcome = twoscale("fit", data, "--set", setting, "--out", tmp_path / "r")
    _refused(outcome, *words)
    assert list(tmp_path.iterdir()) == []


def test_too_many_fourier_modes(twoscale, data, tmp_path):
    arguments = ("--method", "fno", "--set", "modes=13", "--out", tmp_path / "r")
    _refused(twoscale("fit", data, *arguments), "at most 12 Fourier modes")


def test_unknown_method(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--method", "threescale", "--out", tmp_path / "r")
    _refused(outcome, "no method is called 'threescale'", *METHODS)


def test_unknown_problem(twoscale, tmp_path):
    _refused(twoscale("generate", "stokes", "--out", tmp_path / "d"), "stokes", "poisson, darcy")


def test_unknown_device(twoscale, data, tmp_path):
    outcome = twoscale("fit", data, "--device", "tpu", "--out", tmp_path / "r")
    _refused(outcome, "auto, cpu or cuda")


def test_existing_output(twoscale, data, run_folder):
    before = sorted(path.name for path in run_folder.iterdir())
    _refused(twoscale("fit", data, "--out", run_folder), "exists already", "--overwrite")
    assert sorted(path.name for path in run_folder.iterdir()) == before


def test_unwritable_output(twoscale, data, tmp_path):
    (tmp_path / "file").write_text("")
    _refused(twoscale("fit", data, "--out", tmp_path / "file" / "r"), "cannot write")
    _refused(twoscale("generate", "poisson", "--out", tmp_path / "file" / "d"), "cannot write")


def test_another_grid(twoscale, run_folder, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 32, 32)))
    outcome = twoscale("predict", run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy")
    _refused(outcome, "fitted on 16x16 fields, these are 32x32")
    other = tmp_path / "o.zarr"
    assert twoscale("generate", "poisson", "--samples", 12, "--out", other).status == 0
    _refused(twoscale("evaluate", run_folder, "--data", other), "16x16", "64x64")
    assert not (tmp_path / "p.npy").exists()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full((2, 16, 16), np.nan), "NaN or infinite"),
        (np.ones((2, 2, 16, 16)), "(samples, height, width)"),
        (np.ones((2, 16, 16), dtype=complex), "real numbers"),
    ],
)
def test_bad_input_fields(twoscale, run_folder, tmp_path, values, words):
    np.save(tmp_path / "x.npy", values)
    outcome = twoscale("predict", run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy")
    _refused(outcome, words)
    assert not list(tmp_path.glob("p.npy*"))


def test_input_that_is_no_npy(twoscale, run_folder, tmp_path):
    (tmp_path / "x.npy").write_text("hello")
    outcome = twoscale("predict", run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy")
    _refused(outcome, "not a readable npy file")
    outcome = twoscale("predict", run_folder, tmp_path / "y.npy", "--out", tmp_path / "p.npy")
    _refused(outcome, "y.npy does not exist")


def test_damaged_manifest(twoscale, damaged):
    (damaged / "manifest.json").write_text("{")
    _refused(twoscale("evaluate", damaged), "manifest.json is damaged")
    (damaged / "manifest.json").write_text("{}")
    _refused(twoscale("evaluate", damaged), "not a twoscale surrogate's manifest")
    (damaged / "manifest.json").unlink()
    _refused(twoscale("evaluate", damaged), "manifest.json does not exist")


def test_damaged_weights(twoscale, damaged):
    (damaged / "weights.safetensors").write_bytes(b"nothing")
    _refused(twoscale("evaluate", damaged), "weights.safetensors is damaged")
    (damaged / "weights.safetensors").unlink()
    _refused(twoscale("evaluate", damaged), "weights.safetensors does not exist")


@pytest.mark.parametrize("name", ["config.json", "split.json"])
def test_damaged_run(twoscale, damaged, name):
    (damaged / name).write_text("[]")
    _refused(twoscale("evaluate", damaged), f"{name} should hold a JSON object")
    (damaged / name).write_text("{}")
    _refused(twoscale("evaluate", damaged), f"{name} is damaged")


def test_run_that_is_none(twoscale, tmp_path):
    _refused(twoscale("evaluate", tmp_path / "none"), "is not a folder")


def test_dataset_that_moved_or_changed(twoscale, damaged, tmp_path):
    config = json.loads((damaged / "config.json").read_text())
    config["dataset"]["path"] = str(tmp_path / "gone.zarr")
    (damaged / "config.json").write_text(json.dumps(config))
    _refused(twoscale("evaluate", damaged), "gone.zarr does not exist")
    made = ("--resolution", 16, "--samples", 12, "--out", tmp_path / "gone.zarr")
    assert twoscale("generate", "poisson", *made).status == 0
    _refused(twoscale("evaluate", damaged), "has changed since")


def test_damaged_store(twoscale, data, tmp_path):
    copy = tmp_path / "d.zarr"
    shutil.copytree(data, copy)
    (copy / "output" / "c" / "0" / "0" / "0").write_bytes(b"nonsense")
    outcome = twoscale("check", copy)
    assert outcome.status == 2
    assert "checksums" in outcome.err
    _refused(twoscale("fit", copy, "--out", tmp_path / "r"), "is damaged", "'output'")
    (copy / "zarr.json").write_text("{")
    _refused(twoscale("check", copy), "not a readable Zarr group")
    assert not list(tmp_path.glob("r*"))


def test_a_failed_fit_leaves_nothing(twoscale, data, tmp_path):
    arguments = ("--set", "learning_rate=10", "--set", "epochs=1", "--out", tmp_path / "r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twoscale.training._mean_loss", lambda *a: float("nan"))
        _refused(twoscale("fit", data, *arguments), "diverged")
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
    _refused(outcome, "is damaged", f"'{array}'")
    assert list(tmp_path.iterdir()) == [copy]


# Usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "d"), ("--out",)),
        (("generate", "poisson"), ("--out",)),
        (("generate",), ("issing",)),
        (("generate", "poisson", "--seed", "-1", "--out", "d"), ("--seed", "0")),
        (("generate", "poisson", "--seed", "one", "--out", "d"), ("--seed", "integer")),
        (("generate", "poisson", "--resolution", "4", "--out", "d"), ("--resolution", "8")),
        (("demo", "--samples", "5"), ("--samples",)),
        (("fit", "d", "--colour", "red", "--out", "r"), ("--colour",)),
        (("--colour",), ("--colour",)),
        (("ftt",), ("ftt",)),
    ],
)
def test_usage_errors(twoscale, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    outcome = twoscale(*arguments)
    _refused(outcome, *words)
    assert outcome.err.startswith("twoscale: ")
    assert outcome.err.endswith(". Try --help.\n")
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def test_without_arguments_there_is_help(twoscale):
    outcome = twoscale()
    assert outcome.status == 2
    assert "Usage" in outcome.out
    assert "demo" in outcome.out
    assert outcome.err == ""


# Interruption


def _interrupt(*arguments, **options):
    raise KeyboardInterrupt


def _interrupted(outcome):
    assert outcome.status == 130
    assert "Traceback" not in outcome.err + outcome.out
    assert [line for line in outcome.err.splitlines() if line.strip()] == ["twoscale: interrupted"]


def test_an_interrupted_fit_leaves_nothing(twoscale, data, tmp_path, monkeypatch):
    monkeypatch.setattr("twoscale.training._mean_loss", _interrupt)
    _interrupted(twoscale("fit", data, "--out", tmp_path / "runs" / "r"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["check", "evaluate", "predict"])
def test_any_command_can_be_interrupted(twoscale, data, run_folder, tmp_path, monkeypatch, command):
    np.save(tmp_path / "x.npy", np.ones((2, 16, 16)))
    arguments = {
        "check": (data,),
        "evaluate": (run_folder,),
        "predict": (run_folder, tmp_path / "x.npy", "--out", tmp_path / "p.npy"),
    }
    monkeypatch.setattr("twoscale.cli.app.np.load", _interrupt)
    monkeypatch.setattr("twoscale.data.store.checksum", _interrupt)
    _interrupted(twoscale(command, *arguments[command]))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("kind", ["run", "dataset", "file"])
@pytest.mark.parametrize("moment", [1, 2])
def test_an_interrupt_while_replacing_keeps_the_old_result(
    twoscale, data, run_folder, tmp_path, monkeypatch, kind, moment
):
    out = tmp_path / "out"
    np.save(tmp_path / "x.npy", np.ones((2, 16, 16)))
    if kind == "file":
        out.write_bytes(b"old")
        command = ("predict", run_folder, tmp_path / "x.npy")
    elif kind == "run":
        shutil.copytree(run_folder, out)
        command = ("fit", data, "--method", "local", "--set", "epochs=1")
    else:
        shutil.copytree(data, out)
        command = ("generate", "poisson", "--resolution", 16, "--samples", 4)
    before = out.read_bytes() if kind == "file" else _contents(out)
    calls = []

    def rename(source, destination):
        if "out" in (Path(source).name, Path(destination).name):
            calls.append(source)
            if len(calls) == moment:
                raise KeyboardInterrupt
        os.rename(source, destination)

    monkeypatch.setattr(Path, "rename", rename)
    _interrupted(twoscale(*command, "--overwrite", "--out", out))
    assert (out.read_bytes() if kind == "file" else _contents(out)) == before
    assert not (tmp_path / "out.old").exists()


# What --overwrite replaces, and where results go


@pytest.fixture
def commands(data, run_folder, tmp_path):
    """A command of each kind of result, without --out."""
    source = tmp_path / "x.npy"
    np.save(source, np.ones((2, 16, 16)))
    return {
        "fit": ("fit", data, "--method", "local", "--set", "epochs=1"),
        "generate": ("generate", "poisson", "--resolution", 16, "--samples", 4),
        "import": ("import", source, source),
        "predict": ("predict", run_folder, source),
    }


any_command = pytest.mark.parametrize("command", ["fit", "generate", "import", "predict"])


@any_command
def test_other_peoples_folders_are_not_replaced(twoscale, commands, tmp_path, monkeypatch, command):
    mine = tmp_path / "mine"
    (mine / "inside").mkdir(parents=True)
    (mine / "file.txt").write_text("keep")
    monkeypatch.chdir(mine / "inside")
    for out in (mine, ".", ".."):
        outcome = twoscale(*commands[command], "--overwrite", "--out", out)
        _refused(outcome, "is something else and is not replaced")
    assert _contents(mine) == {"file.txt": b"keep"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "x.npy"]


def test_results_of_another_kind_are_not_replaced(twoscale, commands, data, run_folder, tmp_path):
    dataset, run, file = tmp_path / "d.zarr", tmp_path / "run", tmp_path / "p.npy"
    shutil.copytree(data, dataset)
    shutil.copytree(run_folder, run)
    file.write_text("")
    wrong = {
        "fit": (dataset, file),
        "generate": (run, file),
        "import": (run, file),
        "predict": (dataset, run),
    }
    before = _contents(tmp_path)
    for command, places in wrong.items():
        for out in places:
            outcome = twoscale(*commands[command], "--overwrite", "--out", out)
            _refused(outcome, "is something else and is not replaced")
    assert _contents(tmp_path) == before


@any_command
def test_results_of_the_same_kind_are_replaced_if_asked(twoscale, commands, tmp_path, command):
    out = tmp_path / "out"
    assert twoscale(*commands[command], "--out", out).status == 0
    _refused(twoscale(*commands[command], "--out", out), "exists already", "--overwrite")
    assert twoscale(*commands[command], "--overwrite", "--out", out).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.npy"]


@any_command
def test_a_link_leads_to_where_the_result_goes(twoscale, commands, tmp_path, command):
    """To a folder, to a place that is still free, and to an earlier result."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "folder").symlink_to(real)
    (tmp_path / "link").symlink_to(real / "b")
    assert twoscale(*commands[command], "--out", tmp_path / "folder" / "a").status == 0
    assert twoscale(*commands[command], "--out", tmp_path / "link").status == 0
    again = twoscale(*commands[command], "--overwrite", "--out", tmp_path / "link")
    assert again.status == 0
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in real.iterdir()) == ["a", "b"]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["folder", "link", "real", "x.npy"]


# Mistakes that once showed a traceback


def test_prediction_from_several_arrays_or_none(twoscale, run_folder, tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones((2, 16, 16)))
    out = ("--out", tmp_path / "p.npy")
    _refused(twoscale("predict", run_folder, tmp_path / "x.npz", *out), "holds several arrays")
    _refused(twoscale("predict", run_folder, ".", *out), "does not exist or is not a file")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_a_seed_beyond_all_numbers(twoscale, data, tmp_path):
    seed = ("--seed", "99999999999999999999")
    _refused(twoscale("fit", data, *seed, "--out", tmp_path / "r"), "the seed must be")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("device", "words"),
    [("cpu:abc", "the device is auto, cpu or cuda"), ("cuda:9", "no device cuda:9 here")],
)
def test_devices_that_are_none(twoscale, data, run_folder, tmp_path, device, words):
    out = ("--device", device, "--out", tmp_path / "r")
    _refused(twoscale("fit", data, *out), words)
    _refused(twoscale("generate", "poisson", *out), words)
    _refused(twoscale("demo", *out), words)
    _refused(twoscale("evaluate", run_folder, "--device", device), words)
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
    _refused(twoscale("import", tmp_path / "f.h5", *arguments), "f.h5 is damaged")
    assert [path.name for path in tmp_path.iterdir()] == ["f.h5"]


def _edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_entries_of_the_wrong_type(twoscale, damaged):
    _edit(damaged / "config.json", lambda content: content.update(dataset=3))
    _refused(twoscale("evaluate", damaged), "config.json is damaged: it lacks a proper dataset")
    _edit(damaged / "manifest.json", lambda content: content.update(timings=3))
    _refused(twoscale("evaluate", damaged), "has a damaged manifest")


def test_a_dataset_that_does_not_describe_itself(twoscale, data, tmp_path):
    copy = tmp_path / "d.zarr"
    shutil.copytree(data, copy)
    _edit(copy / "zarr.json", lambda content: content["attributes"].pop("distribution"))
    _refused(twoscale("fit", copy, "--out", tmp_path / "r"), "is damaged", "lacks distribution")
    _refused(twoscale("check", copy), "is damaged", "lacks distribution")
    assert list(tmp_path.iterdir()) == [copy]
