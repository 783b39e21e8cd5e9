"""Radii, flags, certificates and polishing on the command line."""

import json

import numpy as np
import pytest

from tests.cli.outcome import refused
from twoscale import Darcy, Grid, Surrogate, TwoscaleWarning, certify
from twoscale.data import Dataset, generate
from twoscale.run import fit_run

AFFINE = {"predictor": "affine"}
FLAGS = {"outside", "roughness", "code", "values", "missed", "channels"}


@pytest.fixture(scope="module")
def darcy_run(tmp_path_factory):
    """A run on Darcy fields of 16 x 16 nodes."""
    folder = tmp_path_factory.mktemp("darcy")
    generate(Darcy(), folder / "d.zarr", resolution=16, samples=180, seed=0)
    fit_run(Dataset(folder / "d.zarr"), folder / "run", method="global", settings=AFFINE)
    return folder / "run"


@pytest.fixture
def media(tmp_path):
    """New media, in a file."""
    fields = Darcy().sample(Grid((16, 16)), range(20), seed=5).numpy()
    np.save(tmp_path / "x.npy", fields)
    return fields


def predict(twoscale, run, folder, *options, out="p.npy"):
    return twoscale("predict", run, folder / "x.npy", "--out", folder / out, *options)


def bounds(folder, name="p.json"):
    return json.loads((folder / name).read_text())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_certified_predictions(twoscale, darcy_run, media, tmp_path):
    outcome = predict(twoscale, darcy_run, tmp_path, "--certify")
    assert outcome.status == 0, outcome.err
    assert names(tmp_path) == ["p.json", "p.npy", "x.npy"]
    fields, found = np.load(tmp_path / "p.npy"), bounds(tmp_path)
    np.testing.assert_array_equal(fields, Surrogate.load(darcy_run).predict(media))
    expected = certify(fields, media, Darcy()).as_dict()
    assert found.pop("problem")["name"] == "darcy"
    assert set(found) - set(expected) == FLAGS
    assert found["outside"] == [False] * 20
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9)
    assert "proven: relative error in the energy norm at most" in outcome.out


def test_parts_of_the_samples_are_certified_one_after_the_other(
    twoscale, darcy_run, media, tmp_path, monkeypatch
):
    predict(twoscale, darcy_run, tmp_path, "--polish", 2)
    monkeypatch.setattr(Surrogate, "_batch_size", lambda self, state: 7)
    predict(twoscale, darcy_run, tmp_path, "--polish", 2, out="q.npy")
    np.testing.assert_allclose(np.load(tmp_path / "q.npy"), np.load(tmp_path / "p.npy"), rtol=1e-3)
    found, expected = bounds(tmp_path, "q.json"), bounds(tmp_path)
    assert len(found["steps"]) == len(found["energy_error_upper"]) == 20
    np.testing.assert_allclose(
        found["energy_error_upper"], expected["energy_error_upper"], rtol=1e-2
    )


def test_polished_predictions(twoscale, darcy_run, media, tmp_path):
    outcome = predict(twoscale, darcy_run, tmp_path, "--tolerance", "1e-8")
    assert outcome.status == 0, outcome.err
    fields, found = np.load(tmp_path / "p.npy"), bounds(tmp_path)
    assert fields.dtype == np.float64
    assert max(found["relative_error_upper"]) <= 1e-8
    assert min(found["steps"]) > 1
    solution = Darcy().solve(Darcy().sample(Grid((16, 16)), range(20), seed=5)).numpy()
    assert np.linalg.norm(fields - solution) < 1e-7 * np.linalg.norm(solution)
    assert "not learning" in outcome.out
    (prediction,), (zero,) = (
        [line.split() for line in outcome.out.splitlines() if line.startswith(start)]
        for start in ("prediction", "zero")
    )
    assert float(prediction[1]) < float(zero[1])


def test_the_table_is_in_the_json(twoscale, darcy_run, media, tmp_path):
    outcome = predict(twoscale, darcy_run, tmp_path, "--polish", 3, "--json")
    printed = json.loads(outcome.out)
    assert [one["start"] for one in printed["polish"]] == ["prediction", "zero"]
    prediction, zero = printed["polish"]
    assert prediction["steps"] == 3
    assert zero["steps"] > 3  # to the same error
    assert zero["relative_error_upper"] <= prediction["relative_error_upper"]
    assert printed["assessment"] == str(tmp_path / "p.json")
    assert printed["relative_error_upper"] == max(bounds(tmp_path)["relative_error_upper"])


def test_another_grid_is_certified_as_it_is(twoscale, darcy_run, tmp_path):
    media = Darcy().sample(Grid((21, 18)), range(3), seed=5).numpy()
    np.save(tmp_path / "x.npy", media)
    assert predict(twoscale, darcy_run, tmp_path, "--certify", "--resample").status == 0
    expected = certify(np.load(tmp_path / "p.npy"), media, Darcy()).energy_error_upper
    np.testing.assert_allclose(bounds(tmp_path)["energy_error_upper"], expected, rtol=1e-9)


# Radii and flags


def test_assessed_predictions(twoscale, darcy_run, media, tmp_path):
    media[4] *= 3
    np.save(tmp_path / "x.npy", media)
    outcome = predict(twoscale, darcy_run, tmp_path, "--assess", "--level", 0.7, "--certify")
    assert outcome.status == 0, outcome.err
    found = bounds(tmp_path)
    with pytest.warns(TwoscaleWarning, match="unlike the training inputs"):
        expected = Surrogate.load(darcy_run).assess(media, level=0.7)
    np.testing.assert_allclose(found["radius"], expected.radius, rtol=1e-6)
    assert found["outside"] == expected.outside.tolist()
    assert found["outside"][4]
    assert len(found["energy_error_upper"]) == 20
    assert "1 of 20 inputs is unlike the training inputs" in outcome.err
    assert "sample 4: range of values above 1000 (limit 1)" in outcome.err
    assert "at level 0.7" in outcome.out


def test_unusual_inputs_are_pointed_out_without_being_asked(twoscale, darcy_run, media, tmp_path):
    np.save(tmp_path / "x.npy", 5 * media)
    outcome = predict(twoscale, darcy_run, tmp_path, "--json")
    found = json.loads(outcome.out)["outside"]
    assert [one["sample"] for one in found] == list(range(20))
    flags = Surrogate.load(darcy_run).flag(5 * media)
    for name in ("roughness", "code", "values", "missed"):
        np.testing.assert_allclose([one[name] for one in found], getattr(flags, name), rtol=1e-6)
    assert names(tmp_path) == ["p.npy", "x.npy"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--assess --level 1.5", "between 0 and 1"),
        ("--assess --level 0.95", "needs 19 calibration samples"),
        ("--assess --polish 2", "--assess"),
        ("--level 0.9", "--assess"),
        ("--polish three", "--polish"),
        ("--tolerance 0", "tolerance"),
    ],
)
def test_wrong_requests_write_nothing(twoscale, darcy_run, media, tmp_path, options, words):
    refused(predict(twoscale, darcy_run, tmp_path, *options.split()), words)
    assert names(tmp_path) == ["x.npy"]


# Files that are there


def test_existing_bounds_are_replaced_only_if_asked(twoscale, darcy_run, media, tmp_path):
    (tmp_path / "p.json").write_text("mine")
    refused(predict(twoscale, darcy_run, tmp_path, "--certify"), "p.json exists already")
    assert (tmp_path / "p.json").read_text() == "mine"
    assert names(tmp_path) == ["p.json", "x.npy"]
    assert predict(twoscale, darcy_run, tmp_path, "--certify", "--overwrite").status == 0
    assert bounds(tmp_path)["energy_error_upper"]


def test_fields_never_lie_beside_bounds_of_others(twoscale, darcy_run, media, tmp_path):
    assert predict(twoscale, darcy_run, tmp_path, "--certify").status == 0
    before = (tmp_path / "p.npy").read_bytes()
    refused(predict(twoscale, darcy_run, tmp_path, "--overwrite"), "p.json speaks of", "--certify")
    assert (tmp_path / "p.npy").read_bytes() == before
    (tmp_path / "p.npy").unlink()
    refused(predict(twoscale, darcy_run, tmp_path), "p.json speaks of")


# Bad input


# What `evaluate` says of trust and of the solver


def test_the_table_is_followed_by_trust_and_break_even(twoscale, run_folder):
    outcome = twoscale("evaluate", run_folder)
    said = " ".join(outcome.out.split())
    assert "No error radius: level 0.95 needs 19 calibration samples, and there are 0." in said
    assert "of 12 inputs" in said
    assert "A prediction takes" in said
    assert "The fit" in said
