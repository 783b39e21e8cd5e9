"""The command line on a server of S3: from data to predictions, and what goes wrong on the way."""

import json

import numpy as np
import pytest

from tests.cli.outcome import contents, refused
from twoscale.data import Dataset, services

pytest.importorskip("moto.server", reason="needs the package moto[server]")
s3fs = pytest.importorskip("s3fs", reason="needs the package s3fs")

from faults.storage import s3_storage  # noqa: E402

PLACE = "s3://bucket/data/p.zarr"
RECIPE = ("generate", "poisson", "--resolution", 16, "--samples", 80)
FIT = ("--method", "two-scale", "--set", "predictor=affine")


@pytest.fixture(scope="module")
def server():
    with s3_storage() as held:
        yield held


@pytest.fixture
def s3(storage):
    yield storage
    s3fs.S3FileSystem.clear_instance_cache()


def test_from_data_to_predictions(twoscale, s3, tmp_path):
    """Everything is as on the local disk, bit for bit."""
    asked = {}
    for name, place in (("here", tmp_path / "p.zarr"), ("there", PLACE)):
        made = twoscale(*RECIPE, "--out", place)
        assert made.status == 0, made.err
        assert str(place) in made.out
        checked = twoscale("check", place)
        assert checked.status == 0, checked.err
        run, fields = tmp_path / name, tmp_path / f"{name}.npy"
        fitted = twoscale("fit", place, *FIT, "--out", run)
        assert fitted.status == 0, fitted.err
        measured = twoscale("evaluate", run, "--json")
        other = twoscale("evaluate", run, "--data", place)
        predicted = twoscale("predict", run, place, "--out", fields)
        assert measured.status == other.status == predicted.status == 0, predicted.err
        assert str(place) in other.out
        asked[name] = (json.loads(measured.out)["mre"], np.load(fields))
    assert asked["here"][0] == asked["there"][0]
    assert np.array_equal(asked["here"][1], asked["there"][1])
    config = json.loads((tmp_path / "there" / "config.json").read_text())
    assert config["dataset"]["path"] == PLACE
    assert twoscale("check", tmp_path / "there").status == 0


def test_imports(twoscale, s3, tmp_path):
    fields = np.random.default_rng(0).standard_normal((40, 16, 16)).astype(np.float32)
    np.savez(tmp_path / "f.npz", a=fields, u=2 * fields)
    outcome = twoscale("import", tmp_path / "f.npz", "--out", PLACE, "--json")
    assert json.loads(outcome.out)["out"] == PLACE
    assert np.array_equal(Dataset(PLACE).read("output", 0, 40), 2 * fields)
    refused(twoscale("import", PLACE, "--out", tmp_path / "d"), f"{PLACE} is a dataset, not")
    refused(twoscale("evaluate", PLACE), f"{PLACE} is a dataset, not a run")
    refused(twoscale("fit", PLACE, tmp_path / "f.npz", "--out", tmp_path / "r"), "only datasets")


@pytest.mark.parametrize("kind", ["error 500", "error 503", "cut short"])
def test_faults_change_nothing(twoscale, s3, tmp_path, kind):
    assert twoscale(*RECIPE, "--out", tmp_path / "p.zarr").status == 0
    s3.plan += 100 * ["", "", "", kind, "", "", "", kind, kind]
    assert twoscale(*RECIPE, "--out", PLACE).status == 0
    assert s3.injected[kind] > 10
    found = Dataset(PLACE)
    for name in ("input", "output"):
        assert np.array_equal(
            found.read(name, 0, 80), Dataset(tmp_path / "p.zarr").read(name, 0, 80)
        )
    held = contents(tmp_path / "p.zarr")
    assert s3.objects("data/") == {f"p.zarr/{key}": value for key, value in held.items()}


@pytest.mark.parametrize("kind", ["error 500", "error 503", "cut short"])
def test_faults_without_end_are_one_sentence(twoscale, s3, tmp_path, kind):
    assert twoscale(*RECIPE, "--out", PLACE).status == 0
    s3.plan += 1000 * [kind]
    for arguments in (
        ("check", PLACE),
        ("fit", PLACE, *FIT, "--out", tmp_path / "r"),
        (*RECIPE, "--out", "s3://bucket/other.zarr"),
    ):
        refused(twoscale(*arguments), "s3://bucket/", "cannot be", "(5 tries)")
    s3.plan.clear()
    assert list(tmp_path.iterdir()) == []
    refused(twoscale("check", "s3://bucket/other.zarr"), "does not exist")


def test_a_server_that_fails_while_shards_are_written(twoscale, s3, tmp_path):
    s3.fails_after = "output/c/1"
    outcome = twoscale(*RECIPE, "--out", PLACE)
    words = "/c/1/0/0 cannot be written"  # of either side: both are sent at the same time
    refused(outcome, words, "run the same command again to go on")
    s3.heal()
    refused(twoscale("check", PLACE), "is not complete")
    assert twoscale(*RECIPE, "--out", PLACE).status == 0
    assert twoscale(*RECIPE, "--out", tmp_path / "p.zarr").status == 0
    assert s3.objects("data/p.zarr/") == contents(tmp_path / "p.zarr")


def test_a_silent_server(twoscale, s3, monkeypatch):
    monkeypatch.setattr(services, "TIMEOUT", 0.05)
    s3.pause = 0.2
    s3.plan += 5 * ["silence"]
    refused(twoscale("check", PLACE), f"{PLACE}/zarr.json cannot be read", "(5 tries)")


def test_a_refused_connection(twoscale, s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    refused(twoscale("check", PLACE), "zarr.json cannot be read", "connect", "(5 tries)")


def test_missing_credentials(twoscale, s3, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    refused(twoscale("check", PLACE), f"{PLACE}/zarr.json cannot be read: no credentials")


def test_a_bucket_that_is_not_there(twoscale, s3):
    refused(twoscale("check", "s3://nowhere/p.zarr"), "s3://nowhere/p.zarr does not exist")
    outcome = twoscale(*RECIPE, "--out", "s3://nowhere/p.zarr")
    refused(outcome, "cannot be written: its bucket does not exist")


def test_data_are_replaced_only_if_asked(twoscale, s3):
    assert twoscale(*RECIPE, "--out", PLACE).status == 0
    before = s3.objects("data/")
    refused(twoscale(*RECIPE, "--out", PLACE), f"{PLACE} exists already", "overwrite")
    assert s3.objects("data/") == before
    assert twoscale(*RECIPE, "--seed", 1, "--out", PLACE, "--overwrite").status == 0
    after = s3.objects("data/")
    assert set(after) == set(before)
    assert after != before
