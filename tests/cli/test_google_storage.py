"""The command line on a server of Google Cloud Storage, and what goes wrong on the way."""

import json

import numpy as np
import pytest

from tests.cli.outcome import contents, refused
from twoscale.data import places, services

pytest.importorskip("gcp_storage_emulator", reason="needs the package gcp-storage-emulator")
gcsfs = pytest.importorskip("gcsfs", reason="needs the package gcsfs")

from faults.google_storage import google_storage  # noqa: E402

PLACE = "gs://bucket/data/p.zarr"
RECIPE = ("generate", "poisson", "--resolution", 16, "--samples", 80)
FAULTS = ["", "error 500", "", "cut short", "", "error 503", "", "connection refused"]
"""Of the first requests of a command: fewer than a single request is tried."""
FIT = ("--method", "two-scale", "--set", "predictor=affine")


@pytest.fixture(scope="module")
def server():
    with google_storage() as held:
        yield held


@pytest.fixture
def gs(storage):
    yield storage
    gcsfs.GCSFileSystem.clear_instance_cache()


def test_from_data_to_predictions(twoscale, gs, tmp_path):
    """Everything is as on the local disk, bit for bit, though requests fail."""
    for name, place in (("here", tmp_path / "p.zarr"), ("there", PLACE)):
        run, fields = tmp_path / name, tmp_path / f"{name}.npy"
        for arguments in (
            (*RECIPE, "--out", place),
            ("check", place),
            ("fit", place, *FIT, "--out", run),
            ("evaluate", run, "--data", place),
            ("predict", run, place, "--out", fields),
        ):
            gs.plan[:] = FAULTS if name == "there" else []
            outcome = twoscale(*arguments)
            assert outcome.status == 0, outcome.err
    assert gs.objects("data/") == {
        f"p.zarr/{name}": content for name, content in contents(tmp_path / "p.zarr").items()
    }
    assert gs.injected.keys() == {*FAULTS} - {""}
    metrics = [
        json.loads((tmp_path / one / "metrics.json").read_text()) for one in ("here", "there")
    ]
    assert metrics[0]["mre"] == metrics[1]["mre"]
    assert np.array_equal(*(np.load(tmp_path / f"{one}.npy") for one in ("here", "there")))


@pytest.mark.parametrize("kind", ["error 500", "cut short", "connection refused"])
def test_faults_without_end_are_one_sentence(twoscale, gs, kind):
    gs.plan += 1000 * [kind]
    refused(twoscale("check", PLACE), f"{PLACE}/zarr.json cannot be read", "(5 tries)")
    refused(twoscale(*RECIPE, "--out", PLACE), f"{PLACE} cannot be listed", "(5 tries)")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("error 401", "no credentials are known; set those of your account, such as GOOGLE_"),
        ("error 403", "access is denied; check the credentials and rights of your account"),
    ],
)
def test_refusals_are_told_at_once(twoscale, gs, kind, words):
    gs.plan += 1000 * [kind]
    outcome = twoscale("check", PLACE)
    refused(outcome, f"{PLACE}/zarr.json cannot be read: {words}")
    assert "tries" not in outcome.err
    assert len(gs.requests) < 3 * places.TRIES  # one of a client that gave up may come late


def test_a_silent_server(twoscale, gs, monkeypatch):
    monkeypatch.setattr(services, "TIMEOUT", 0.05)
    gs.pause = 0.2
    gs.plan += 20 * ["silence"]
    refused(twoscale("check", PLACE), f"{PLACE}/zarr.json cannot be read: no answer", "(5 tries)")


def test_a_refused_connection(twoscale, gs, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    refused(twoscale("check", PLACE), "zarr.json cannot be read", "onnect", "(5 tries)")


def test_a_bucket_that_is_not_there(twoscale, gs):
    refused(twoscale("check", "gs://nowhere/p.zarr"), "gs://nowhere/p.zarr does not exist")
    outcome = twoscale(*RECIPE, "--out", "gs://nowhere/p.zarr")
    refused(outcome, "cannot be written: its bucket does not exist")


def test_data_are_replaced_only_if_asked(twoscale, gs):
    assert twoscale(*RECIPE, "--out", PLACE).status == 0
    before = gs.objects("data/")
    refused(twoscale(*RECIPE, "--out", PLACE), f"{PLACE} exists already", "overwrite")
    assert gs.objects("data/") == before
    assert twoscale(*RECIPE, "--samples", 20, "--out", PLACE, "--overwrite").status == 0
    assert gs.objects("data/").keys() < before.keys()
