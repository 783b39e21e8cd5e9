"""The command line on servers of S3 and Google Cloud Storage, and what goes wrong on the way."""

import json
from typing import NamedTuple

import numpy as np
import pytest

from tests.cli.outcome import contents, refused
from twoscale.data import Dataset, places, services

RECIPE = ("generate", "poisson", "--resolution", 16, "--samples", 80)
FIT = ("--method", "two-scale", "--set", "predictor=affine")
FAULTS = ["", "error 500", "", "cut short", "", "error 503"]
"""Of the first requests of a command: fewer than a single request is tried."""


class StorageKind(NamedTuple):
    """A service, the variable with its address, and the class whose connections are shared."""

    scheme: str
    address: str
    system: type

    @property
    def place(self) -> str:
        return f"{self.scheme}://bucket/data/p.zarr"


@pytest.fixture(scope="module", params=["s3", "gs"])
def service(request):
    """A kind of storage, and a server of it."""
    if request.param == "s3":
        pytest.importorskip("moto.server", reason="needs the package moto[server]")
        s3fs = pytest.importorskip("s3fs", reason="needs the package s3fs")
        from faults.storage import s3_storage as storage

        kind = StorageKind("s3", "AWS_ENDPOINT_URL", s3fs.S3FileSystem)
    else:
        pytest.importorskip("gcp_storage_emulator", reason="needs gcp-storage-emulator")
        gcsfs = pytest.importorskip("gcsfs", reason="needs the package gcsfs")
        from faults.google_storage import google_storage as storage

        kind = StorageKind("gs", "STORAGE_EMULATOR_HOST", gcsfs.GCSFileSystem)
    with storage() as server:
        yield kind, server


@pytest.fixture(scope="module")
def kind(service):
    return service[0]


@pytest.fixture(scope="module")
def server(service):
    return service[1]


@pytest.fixture
def cloud(storage, kind):
    yield storage
    kind.system.clear_instance_cache()


def test_from_data_to_predictions(twoscale, cloud, kind, tmp_path):
    """Everything is as on the local disk, bit for bit, though requests fail."""
    for name, place in (("here", tmp_path / "p.zarr"), ("there", kind.place)):
        run, fields = tmp_path / name, tmp_path / f"{name}.npy"
        for arguments in (
            (*RECIPE, "--out", place),
            ("check", place),
            ("fit", place, *FIT, "--out", run),
            ("evaluate", run, "--data", place),
            ("predict", run, place, "--out", fields),
        ):
            cloud.plan[:] = FAULTS if name == "there" else []
            outcome = twoscale(*arguments)
            assert outcome.status == 0, outcome.err
    written = contents(tmp_path / "p.zarr")
    assert cloud.objects("data/") == {f"p.zarr/{name}": value for name, value in written.items()}
    assert cloud.injected.keys() >= {*FAULTS} - {""}
    metrics = [
        json.loads((tmp_path / one / "metrics.json").read_text()) for one in ("here", "there")
    ]
    assert metrics[0]["mre"] == metrics[1]["mre"]
    assert np.array_equal(*(np.load(tmp_path / f"{one}.npy") for one in ("here", "there")))
    config = json.loads((tmp_path / "there" / "config.json").read_text())
    assert config["dataset"]["path"] == kind.place
    assert twoscale("check", tmp_path / "there").status == 0


def test_imports(twoscale, cloud, kind, tmp_path):
    fields = np.random.default_rng(0).standard_normal((40, 16, 16)).astype(np.float32)
    np.savez(tmp_path / "f.npz", a=fields, u=2 * fields)
    place = kind.place
    outcome = twoscale("import", tmp_path / "f.npz", "--out", place, "--json")
    assert json.loads(outcome.out)["out"] == place
    assert np.array_equal(Dataset(place).read("output", 0, 40), 2 * fields)
    refused(twoscale("import", place, "--out", tmp_path / "d"), f"{place} is a dataset, not")
    refused(twoscale("evaluate", place), f"{place} is a dataset, not a run")
    refused(twoscale("fit", place, tmp_path / "f.npz", "--out", tmp_path / "r"), "only datasets")


@pytest.mark.parametrize("fault", ["error 500", "cut short"])
def test_faults_without_end_are_one_sentence(twoscale, cloud, kind, tmp_path, fault):
    assert twoscale(*RECIPE, "--out", kind.place).status == 0
    cloud.plan += 1000 * [fault]
    for arguments in (
        ("check", kind.place),
        ("fit", kind.place, *FIT, "--out", tmp_path / "r"),
        (*RECIPE, "--out", f"{kind.scheme}://bucket/other.zarr"),
    ):
        refused(twoscale(*arguments), f"{kind.scheme}://bucket/", "cannot be", "(5 tries)")
    cloud.plan.clear()
    assert list(tmp_path.iterdir()) == []
    refused(twoscale("check", f"{kind.scheme}://bucket/other.zarr"), "does not exist")


def test_a_server_that_fails_while_shards_are_written(twoscale, cloud, kind, tmp_path):
    if kind.scheme == "gs":
        pytest.skip("the emulator fails by a plan of requests only")
    cloud.fails_after = "output/c/1"
    outcome = twoscale(*RECIPE, "--out", kind.place)
    refused(outcome, "/c/1/0/0 cannot be written", "run the same command again to go on")
    cloud.heal()
    refused(twoscale("check", kind.place), "is not complete")
    for place in (kind.place, tmp_path / "p.zarr"):
        assert twoscale(*RECIPE, "--out", place).status == 0
    assert cloud.objects("data/p.zarr/") == contents(tmp_path / "p.zarr")


@pytest.mark.parametrize(
    ("fault", "words"), [("error 401", "credentials"), ("error 403", "denied")]
)
def test_refusals_are_told_at_once(twoscale, cloud, kind, fault, words):
    if kind.scheme == "s3":
        pytest.skip("the server's plan has only faults that pass")
    cloud.plan += 1000 * [fault]
    outcome = twoscale("check", kind.place)
    refused(outcome, f"{kind.place}/zarr.json cannot be read", words)
    assert "tries" not in outcome.err
    assert len(cloud.requests) < 3 * places.TRIES  # one of a client that gave up may come late


def test_missing_credentials(twoscale, cloud, kind, monkeypatch, tmp_path):
    if kind.scheme == "gs":
        pytest.skip("its emulator takes anybody")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    refused(twoscale("check", kind.place), f"{kind.place}/zarr.json cannot be read: no credentials")


def test_a_server_that_is_silent_or_not_there(twoscale, cloud, kind, monkeypatch):
    monkeypatch.setattr(services, "TIMEOUT", 0.05)
    cloud.pause = 0.2
    cloud.plan += 20 * ["silence"]
    refused(twoscale("check", kind.place), f"{kind.place}/zarr.json cannot be read", "(5 tries)")
    cloud.heal()
    kind.system.clear_instance_cache()
    monkeypatch.setenv(kind.address, "http://127.0.0.1:9")
    refused(twoscale("check", kind.place), "zarr.json cannot be read", "onnect", "(5 tries)")


def test_a_bucket_that_is_not_there(twoscale, cloud, kind):
    place = f"{kind.scheme}://nowhere/p.zarr"
    refused(twoscale("check", place), f"{place} does not exist")
    refused(twoscale(*RECIPE, "--out", place), "cannot be written: its bucket does not exist")


def test_data_are_replaced_only_if_asked(twoscale, cloud, kind):
    assert twoscale(*RECIPE, "--out", kind.place).status == 0
    before = cloud.objects("data/")
    refused(twoscale(*RECIPE, "--out", kind.place), f"{kind.place} exists already", "overwrite")
    assert cloud.objects("data/") == before
    assert twoscale(*RECIPE, "--samples", 20, "--out", kind.place, "--overwrite").status == 0
    assert cloud.objects("data/").keys() < before.keys()
