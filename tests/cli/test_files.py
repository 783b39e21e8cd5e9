"""Files of others, from the file to the prediction, without a dataset in between."""

import json
import shlex

import numpy as np
import pytest
import torch

from tests.cli.outcome import refused
from tests.data.readers import written
from twoscale import Surrogate
from twoscale.data import Dataset, Reading, open_data
from twoscale.run import fit_run

SAMPLES = 30
AFFINE = ("--method", "global", "--set", "predictor=affine")


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    waves = np.stack([np.outer(np.sin(np.arange(12) * k / 4), np.ones(14)) for k in (1, 2, 3)])
    x = np.einsum("nk,khw->nhw", rng.standard_normal((SAMPLES, 3)), waves)
    x = x.astype(np.float32).astype(np.float64)
    return {"a": x, "u": 2 * x + 1}


def affine(file, out, **asked):
    """Fit a small run from a file."""
    return fit_run(
        open_data(file, Reading.of(**asked)), out, method="global", settings={"predictor": "affine"}
    )


@pytest.fixture(scope="module")
def fitted(pair, tmp_path_factory):
    """The folder of a surrogate that was fitted from a file whose samples are last."""
    folder = tmp_path_factory.mktemp("fitted")
    file = written.npz(folder, **{name: np.moveaxis(one, 0, 2) for name, one in pair.items()})
    affine(file, folder / "run", axes="hwn")
    return folder / "run"


@pytest.mark.filterwarnings("error")
def test_a_fit_from_a_file_ends_with_commands(twoscale, done, pair, tmp_path):
    file, stored = written.npz(tmp_path, k1=pair["a"], k2=pair["u"]), tmp_path / "t.zarr"
    asked = (file, "--input", "k1", "--output", "k2")
    done("import", *asked, "--out", stored)
    outcome = twoscale("fit", *asked, "--test", stored, *AFFINE, "--out", tmp_path / "run")
    assert outcome.status == 0, outcome.err
    assert not outcome.err
    assert "twoscale evaluate" in outcome.out
    outcome = twoscale("fit", stored, "--test", *asked, *AFFINE, "--out", tmp_path / "other")
    assert outcome.status == 0, outcome.err


def test_from_a_file_to_a_prediction(twoscale, done, pair, tmp_path):
    file = written.npz(tmp_path, **pair)
    run = tmp_path / "run"
    asked = ("--input", "a", "--output", "u", "--axes", "nhw", "--periodic", "rows")
    metrics = json.loads(done("fit", file, *asked, *AFFINE, "--out", run, "--json"))
    assert Surrogate.load(run).input_space_.grid.periodic == (True, False)
    assert metrics["mre"] < 1e-3
    recorded = json.loads((run / "config.json").read_text())["dataset"]
    assert recorded["files"] == [str(file)]
    assert (recorded["reading"]["inputs"], recorded["reading"]["outputs"]) == (["a"], ["u"])
    assert json.loads(done("evaluate", run, "--json"))["mre"] == pytest.approx(metrics["mre"])
    everything = json.loads(done("evaluate", run, "--data", file, "--select", "0:20", "--json"))
    assert everything["mre"] < 1e-3
    done("predict", run, file, "--out", tmp_path / "p.npy")
    predicted = np.load(tmp_path / "p.npy")
    np.testing.assert_allclose(predicted, pair["u"], rtol=1e-2, atol=1e-2)
    done("predict", run, file, "--select", "3:9:2", "--out", tmp_path / "q.npy")
    np.testing.assert_allclose(np.load(tmp_path / "q.npy"), predicted[3:9:2], atol=1e-5)
    done("check", run)
    np.savez(file, a=pair["a"] + 1, u=pair["u"])
    words = ("has changed since", "other data")
    refused(twoscale("evaluate", run), *words)


def test_a_run_remembers_names_and_axes(twoscale, done, fitted, pair, tmp_path):
    moved = {name: np.moveaxis(one, 0, 2)[..., :7] for name, one in pair.items()}
    file = written.hdf5(tmp_path, **moved, other=moved["a"])
    done("predict", fitted, file, "--out", tmp_path / "p.npy")
    assert np.load(tmp_path / "p.npy").shape == (7, 12, 14)
    metrics = json.loads(done("evaluate", fitted, "--data", file, "--json"))
    assert metrics["mre"] < 1e-3
    renamed = written.mat73(tmp_path, k=moved["a"], v=moved["u"])
    refused(twoscale("predict", fitted, renamed, "--out", tmp_path / "q.npy"), "no array 'a'")
    done("predict", fitted, renamed, "--input", "k", "--axes", "hwn", "--out", tmp_path / "q.npy")
    assert np.array_equal(np.load(tmp_path / "q.npy"), np.load(tmp_path / "p.npy"))
    torch.save(torch.from_numpy(np.array(pair["a"])), tmp_path / "x.pt")
    done("predict", fitted, tmp_path / "x.pt", "--out", tmp_path / "r.npy")
    np.testing.assert_allclose(
        np.load(tmp_path / "r.npy")[:7], np.load(tmp_path / "p.npy"), atol=1e-5
    )


def test_an_imported_dataset_remembers_too(done, pair, tmp_path):
    file = written.hdf5(tmp_path, k=pair["a"], v=pair["u"], nu=np.arange(float(SAMPLES)))
    keys = ("--input", "k", "--output", "v", "--parameters", "nu")
    done("import", file, *keys, "--select", "0:20", "--out", tmp_path / "d")
    assert Dataset(tmp_path / "d").samples == 20
    affine(tmp_path / "d", tmp_path / "run")
    done("predict", tmp_path / "run", file, "--out", tmp_path / "p.npy")
    assert np.load(tmp_path / "p.npy").shape == (SAMPLES, 12, 14)
    done("predict", tmp_path / "run", tmp_path / "d", "--out", tmp_path / "d.npy")
    assert np.array_equal(np.load(tmp_path / "d.npy"), np.load(tmp_path / "p.npy")[:20])
    np.save(tmp_path / "nu.npy", np.arange(float(SAMPLES)))
    given = ("--parameters", tmp_path / "nu.npy", "--out", tmp_path / "q.npy")
    done("predict", tmp_path / "run", file, *given)
    assert np.array_equal(np.load(tmp_path / "q.npy"), np.load(tmp_path / "p.npy"))
    named = ("--parameters", "nu", "--input", "k", "--out", tmp_path / "r.npy")
    Surrogate.load(tmp_path / "run").save(tmp_path / "saved")
    done("predict", tmp_path / "saved", file, *named)
    assert np.array_equal(np.load(tmp_path / "r.npy"), np.load(tmp_path / "p.npy"))


def test_parameters_alone_from_a_file(twoscale, done, pair, tmp_path):
    scalars = np.random.default_rng(1).random((SAMPLES, 2))
    fields = scalars[:, :1, None] * pair["u"][0] + scalars[:, 1:, None] * pair["u"][1]
    file = written.hdf5(tmp_path, p=scalars, u=fields)
    run = tmp_path / "run"
    affine(file, run, parameters="p", outputs="u")
    done("predict", run, file, "--out", tmp_path / "p.npy")
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), fields, rtol=1e-2, atol=1e-2)
    Surrogate.load(run).save(tmp_path / "saved")
    outcome = twoscale("predict", tmp_path / "saved", file, "--out", tmp_path / "q.npy")
    refused(outcome, "reads 2 parameters", "--parameters")


def test_options_of_files_are_not_for_datasets(twoscale, data, run_folder, tmp_path):
    words = ("is a dataset, whose arrays and axes are settled",)
    refused(twoscale("fit", data, "--axes", "nhw", "--out", tmp_path / "r"), *words)
    refused(twoscale("evaluate", run_folder, "--data", data, "--input", "a"), *words)


def test_a_fit_on_a_file_ends_with_commands_that_run(done, pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written.npz(tmp_path, k=pair["a"], v=pair["u"])
    np.save("inputs.npy", pair["a"][:2])
    loose = (*AFFINE, "--set", "code_size=1")
    keys = ("--input", "k", "--output", "v")
    done("import", "f.npz", *keys, "--out", "d.zarr")
    for data, told in ((("f.npz", *keys), "f.npz --input k --output v"), (("d.zarr",), "d.zarr")):
        out = done("fit", *data, *loose, "--out", "run", "--overwrite")
        _, predict, again = (line.strip() for line in out.splitlines() if line[:4] == "    ")
        assert again.startswith(f"twoscale fit {told} --method global")
        for command in (predict, again):
            done(*shlex.split(command)[1:], "--overwrite")


def test_where_nothing_is_learned_the_data_are_checked(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(0).standard_normal((2, SAMPLES, 8, 8))
    written.npz(tmp_path, a=noise[0], u=noise[1])
    out = done("fit", "f.npz", *AFFINE, "--set", "ridge=0", "--axes", "nhw", "--out", "run")
    *_, command = out.rstrip().splitlines()
    assert command.strip() == "twoscale check f.npz --input a --output u --axes nhw"
    done(*shlex.split(command)[1:])


def test_files_are_checked_as_they_are(twoscale, done, pair, tmp_path):
    file = written.npz(tmp_path, **pair)
    assert f"{SAMPLES} pairs of 12x14 fields" in done("check", file)
    assert "checksums" not in done("check", file)
    found = json.loads(done("check", file, "--select", "0:20", "--test", file, "--json"))
    (leak,) = (one for one in found["findings"] if "test samples" in one["message"])
    assert "20 test samples" in leak["message"]
    noise = np.random.default_rng(0).standard_normal(200)
    last = np.multiply.outer(np.add.outer(np.arange(12.0), np.arange(9.0)), noise)
    wrong = written.npz(tmp_path, a=last, u=2 * last)
    assert "axes hwn" in done("check", wrong, "--axes", "nhw")
    bad = pair["u"].copy()
    bad[3, 2, 2] = np.nan
    outcome = twoscale("check", written.npz(tmp_path, a=pair["a"], u=bad))
    assert "output: NaN or infinite values in 1 sample (3)" in outcome.out
    refused(outcome, "has 1 error(s)")


def test_two_files_are_an_input_and_an_output(done, pair, tmp_path):
    files = [tmp_path / "x.npy", tmp_path / "y.npy"]
    for path, values in zip(files, pair.values(), strict=True):
        np.save(path, values)
    out = done("fit", *files, *AFFINE, "--set", "code_size=1", "--out", tmp_path / "run")
    assert f"twoscale fit {files[0]} {files[1]} --method" in out
    assert f"{SAMPLES} pairs" in done("check", *files)
    done("predict", tmp_path / "run", files[0], "--out", tmp_path / "p.npy")
    assert np.load(tmp_path / "p.npy").shape == pair["u"].shape


def test_a_selection_is_one_of_the_data_not_of_the_test_file(done, pair, tmp_path):
    file = written.npz(tmp_path, k=pair["a"], v=pair["u"])
    keys = ("--input", "k", "--output", "v")
    some = ("--select", "0:20", "--test", file)
    fitted = json.loads(done("fit", file, *keys, *some, *AFFINE, "--out", tmp_path / "r", "--json"))
    assert fitted["samples"] == SAMPLES
    done("import", file, *keys, "--out", tmp_path / "d")
    for data, test in ((file, tmp_path / "d"), (tmp_path / "d", file)):
        run = tmp_path / f"run-{data.name}"
        done("fit", data, *keys, "--test", test, *AFFINE, "--out", run)
        assert json.loads((run / "metrics.json").read_text())["samples"] == SAMPLES
