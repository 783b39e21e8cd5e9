"""Windows of fields: what is read of large ones, and that it is what was written."""

import numpy as np
import pytest
import torch
import zarr

from tests.data.tools import change_chunk, flip
from twoscale.data import Dataset, FileDataset, Reading, description, import_fields, shards, store
from twoscale.data.places import read_range
from twoscale.data.shards import index_bytes
from twoscale.errors import TwoscaleError
from twoscale.fields import source
from twoscale.fields.source import gather
from twoscale.math import pca
from twoscale.representation import PatchPCA

SIDES = (50, 70)  # of fields of 14 kB, stored in tiles of at most 2 kB


@pytest.fixture
def values():
    generator = np.random.default_rng(0)
    return {
        "a": generator.standard_normal((5, 3, *SIDES)).astype(np.float32),
        "u": generator.standard_normal((5, *SIDES)).astype(np.float32),
        "p": generator.standard_normal((5, 2)).astype(np.float32),
    }


@pytest.fixture
def large(values, tmp_path, monkeypatch):
    monkeypatch.setattr(description, "_CHUNK_BYTES", 2048)
    monkeypatch.setattr(description, "_SHARD_BYTES", 2 * 4 * 3 * 50 * 70)
    np.savez(tmp_path / "f.npz", **values)
    return import_fields(
        tmp_path / "f.npz", tmp_path / "d.zarr", inputs="a", outputs="u", parameters="p"
    )


@pytest.fixture
def read_bytes(monkeypatch):
    """The lengths of the stretches of bytes that are read."""
    lengths = []

    def counted(place, start, length):
        lengths.append(length)
        return read_range(place, start, length)

    monkeypatch.setattr(shards, "read_range", counted)
    return lengths


def test_large_fields_are_stored_in_tiles(large, values):
    cut = large.layout.chunkings
    assert cut["input"].chunk == (1, 3, 13, 9)  # 1.4 kB
    assert cut["input"].grid == (5, 1, 4, 8)
    assert cut["output"].chunk == (1, 25, 18)
    assert cut["parameters"].chunk == (1, 2)
    assert {name: one.rows for name, one in cut.items()} == {
        "input": 2,
        "parameters": 2,
        "output": 2,
    }
    sums = {name: len(one) for name, one in large.metadata["checksums"].items()}
    assert sums == {"input": 5 * 32, "output": 5 * 8, "parameters": 5}
    for name, key in (("input", "a"), ("output", "u"), ("parameters", "p")):
        assert np.array_equal(large.read(name, 0, 5), values[key])
        assert np.array_equal(zarr.open_array(large.path / name, mode="r")[:], values[key])


@pytest.mark.parametrize("rows", [slice(0, 50), slice(3, 4), slice(25, None), slice(-7, -2)])
@pytest.mark.parametrize("columns", [slice(None), slice(17, 19), slice(60, 70), slice(0, 18)])
def test_windows_are_those_of_whole_fields(large, values, rows, columns):
    found = large.read("output", 1, 4, window=(rows, columns))
    assert np.array_equal(found, values["u"][1:4, rows, columns])
    found = large.read("input", 1, 4, window=(rows, columns))
    assert np.array_equal(found, values["a"][1:4, :, rows, columns])


def test_a_window_reads_only_the_tiles_it_meets(large, read_bytes, monkeypatch):
    monkeypatch.setattr(store, "chunk_length", lambda *sides: 1)  # as for fields of 16 MiB
    stored = large.fields("output", [0, 1, 4])
    gather(stored)
    whole = sum(read_bytes)
    indices = 2 * index_bytes(large.layout.chunkings["output"])  # read once
    read_bytes.clear()
    part = stored.window(slice(26, 50), slice(55, 70))
    assert part.shape == (3, 1, 24, 15)
    assert torch.equal(gather(part), gather(stored)[:, :, 26:50, 55:70])
    read_bytes.clear()
    gather(part)
    assert len(read_bytes) == 3  # one tile of each field
    assert sum(read_bytes) < (whole - indices) / 6


def test_windows_of_windows(large):
    stored = large.fields("output", range(5))
    inner = stored.window(slice(10, 40), slice(20, 60)).window(slice(5, None), slice(-10, None))
    assert torch.equal(gather(inner), gather(stored)[:, :, 15:40, 50:60])
    assert inner.to("cpu").shape == inner.shape == (5, 1, 25, 10)


@pytest.mark.parametrize(
    "window", [(slice(0, 0), slice(3)), (slice(4, 2), slice(3)), (slice(0, 9, 2), slice(3))]
)
def test_windows_that_are_none(large, window):
    with pytest.raises(TwoscaleError, match="a window has consecutive rows from 0 to 49"):
        large.fields("output", [0]).window(*window)
    with pytest.raises(TwoscaleError, match="parameters have no grid"):
        large.read("parameters", 0, 1, window=window)


def test_damage_of_a_tile_is_told_where_it_is_read(large):
    change_chunk(large.path, "output", 1, flip, tile=5)
    opened = Dataset(large.path)
    with pytest.raises(TwoscaleError, match="samples 1 to 1 of 'output' cannot be read"):
        opened.read("output", 0, 5)
    with pytest.raises(TwoscaleError, match="samples 1 to 1 of 'output' cannot be read"):
        opened.read("output", 0, 5, window=(slice(49, 50), slice(35, 37)))
    assert opened.read("output", 0, 5, window=(slice(0, 25), slice(0, 70))).shape == (5, 25, 70)
    assert not opened.intact("output", 1, opened.read("output", 1, 2, verify=False))
    assert opened.intact("output", 0, opened.read("output", 0, 1))


@pytest.mark.parametrize("side", ["output", "input"])
def test_a_pca_of_patches_reads_the_tiles_of_each_group(large, read_bytes, monkeypatch, side):
    """Two groups read half of each field on a pass; ranges and results are those of memory."""
    monkeypatch.setattr(pca, "_DATA_BYTES", 1)
    monkeypatch.setattr(pca, "_GRAM_BYTES", 1)  # for one block
    monkeypatch.setattr(source, "_CHUNK_VALUES", 2 * 50 * 70)  # two samples, or one
    stored = large.fields(side, range(5))
    expected = PatchPCA(2, patches=(2, 1)).fit(gather(stored)).state_dict()
    whole = sum(read_bytes)
    read_bytes.clear()
    found = PatchPCA(2, patches=(2, 1)).fit(stored).state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert sum(read_bytes) < (1.4 + 6 * 1.3) * whole  # the mean; six passes with tiles of both


def test_windows_of_fields_on_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(description, "_CHUNK_BYTES", 4 * 16)
    lines = np.arange(6 * 40, dtype=np.float32).reshape(6, 40)
    np.savez(tmp_path / "f.npz", a=lines, u=lines + 1)
    dataset = import_fields(tmp_path / "f.npz", tmp_path / "d.zarr", inputs="a", outputs="u")
    assert dataset.layout.chunkings["output"].chunk == (1, 10)
    part = dataset.fields("output", range(6)).window(slice(0, 1), slice(15, 33))
    assert torch.equal(gather(part)[:, 0, 0], torch.from_numpy(lines[:, 15:33] + 1))


def test_files_of_others_have_windows_too(values, tmp_path):
    np.savez(tmp_path / "f.npz", **values)
    asked = Reading.of(inputs="a", outputs="u", parameters="p")
    dataset = FileDataset(tmp_path / "f.npz", asked)
    part = dataset.fields("output", [1, 3]).window(slice(7, 9), slice(0, 5))
    assert np.array_equal(gather(part)[:, 0], values["u"][[1, 3], 7:9, :5])
