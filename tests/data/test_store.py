import json
import shutil

import numpy as np
import pytest
import torch

from twoscale.data import Dataset, generate, store
from twoscale.errors import TwoscaleError
from twoscale.linalg.pca import RankRule
from twoscale.problems import Poisson
from twoscale.representation import PatchPCA


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_CHUNK_BYTES", 4 * 16 * 16 * 4)
    return generate(Poisson(), tmp_path / "d.zarr", resolution=16, samples=30, seed=0)


def test_load_returns_ascending_samples(dataset):
    whole = dataset.load("input", range(30))
    assert torch.equal(dataset.load("input", [7, 2, 29]), whole[[2, 7, 29]])


def test_chunks_of_a_subset_cover_it_in_order(dataset, monkeypatch):
    monkeypatch.setattr(store, "chunk_length", lambda height, width: 6)
    chosen = [1, 2, 13, 14, 28]
    parts = list(dataset.fields("output", chosen).chunks())
    assert len(parts) > 2
    assert torch.equal(torch.cat(parts), dataset.load("output", range(30))[chosen])


def test_a_fit_reads_from_disk_as_from_memory(dataset, monkeypatch):
    monkeypatch.setattr(store, "chunk_length", lambda height, width: 8)
    stored = dataset.fields("output", range(24))
    held = dataset.load("output", range(24))
    fits = [PatchPCA(RankRule(variance=0.99)).fit(fields) for fields in (stored, held)]
    assert fits[0].code_size == fits[1].code_size
    torch.testing.assert_close(
        fits[0].reconstruct(held), fits[1].reconstruct(held), rtol=1e-4, atol=1e-7
    )


def test_identity_follows_the_content(dataset, tmp_path):
    same = generate(Poisson(), tmp_path / "same", resolution=16, samples=30, seed=0)
    other = generate(Poisson(), tmp_path / "other", resolution=16, samples=30, seed=1)
    assert same.identity == dataset.identity != other.identity


def _edit_attributes(path, change):
    file = path / "zarr.json"
    content = json.loads(file.read_text())
    change(content["attributes"])
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(format="other"), "is not a twoscale dataset"),
        (lambda a: a.update(format_version=99), "dataset format 99"),
        (lambda a: a.pop("grid"), "is damaged"),
        (lambda a: a.update(samples=31), "do not match its description"),
        (lambda a: a["checksums"]["input"].pop(), "do not match its description"),
        (lambda a: a.update(complete=False), "do not match its description"),
    ],
)
def test_damaged_descriptions(dataset, change, message):
    _edit_attributes(dataset.path, change)
    with pytest.raises(TwoscaleError, match=message):
        Dataset(dataset.path)


def test_missing_store(tmp_path):
    with pytest.raises(TwoscaleError, match="does not exist"):
        Dataset(tmp_path / "none.zarr")


def test_a_file_is_not_a_store(tmp_path):
    (tmp_path / "x").write_text("hello")
    with pytest.raises(TwoscaleError, match="not a readable Zarr group"):
        Dataset(tmp_path / "x")


def test_missing_array(dataset):
    shutil.rmtree(dataset.path / "output")
    with pytest.raises(TwoscaleError, match="is damaged"):
        Dataset(dataset.path)


def test_damaged_chunk_is_named(dataset):
    chunk = dataset.path / "output" / "c" / "1" / "0" / "0"
    chunk.write_bytes(b"nonsense")
    with pytest.raises(TwoscaleError, match=r"samples .* of 'output' cannot be read"):
        Dataset(dataset.path).load("output", range(30))


def test_checksum_sees_one_bit():
    values = np.zeros(4, dtype=np.float32)
    other = values.copy()
    other[3] = -0.0
    assert store.checksum(values) != store.checksum(other)
