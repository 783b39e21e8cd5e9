import json
import os
import pickle
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
import zarr
from hypothesis import given
from hypothesis import strategies as st

from tests.damage import changed, read_or_refused, repeatable
from tests.data.tools import change_chunk, shard_file
from twoscale.data import Dataset, generate, shards
from twoscale.data.places import read_range
from twoscale.errors import TwoscaleError
from twoscale.problems import Poisson
from twoscale.runtime import memory


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**12, 16, 16]},
        {"shape": "all"},
        {"data_type": "float64"},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [30, 16, 16]}}},
        {"codecs": []},
        {"codecs": [{"name": "sharding_indexed", "configuration": 3}]},
        {"codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 16, 16]}}]},
        {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}},
        {"storage_transformers": [{"name": "x"}]},
        {"fill_value": "x"},
    ],
    ids=str,
)
def test_damaged_arrays(dataset, change):
    file = dataset.path / "output" / "zarr.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(TwoscaleError, match=r"is damaged: .*output"):
        Dataset(dataset.path)


def test_metadata_repeated_in_the_group_are_not_believed(dataset):
    """Zarr would take the arrays' descriptions from there."""
    file = dataset.path / "zarr.json"
    content = json.loads(file.read_text())
    array = json.loads((dataset.path / "input" / "zarr.json").read_text())
    array["shape"] = [10**9, 16, 16]
    both = {"input": array, "output": array}
    content["consolidated_metadata"] = {"kind": "inline", "metadata": both}
    file.write_text(json.dumps(content))
    assert torch.equal(Dataset(dataset.path).load("input", [29]), dataset.load("input", [29]))


def test_chunks_must_fit_the_memory(dataset, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 8000)
    with pytest.raises(TwoscaleError, match=r"in parts needs 8\.2 kB of memory, 8 kB are free"):
        Dataset(dataset.path)


def _pipe(shard):
    shard.unlink()
    os.mkfifo(shard)


def _link(shard):
    shard.rename(shard.with_name("aside"))
    shard.symlink_to(shard.with_name("aside"))


def _folder(shard):
    shard.unlink()
    shard.mkdir()


def _cut(shard):
    shard.write_bytes(shard.read_bytes()[:-1])


@pytest.mark.parametrize(
    "make",
    [
        _pipe,
        _link,
        _folder,
        _cut,
        lambda shard: shard.unlink(),
        lambda shard: shard.write_bytes(b""),
    ],
    ids=["pipe", "link", "folder", "cut", "lost", "empty"],
)
def test_shards_that_are_no_proper_files(dataset, make):
    make(shard_file(dataset.path, "output"))
    opened = Dataset(dataset.path)
    for verify in (True, False):
        with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
            opened.read("output", 4, 8, verify=verify)


def _larger(chunk):
    """Blosc would unpack as much as the header says, up to 2 GB."""
    chunk[4:8] = (2**31 - 1).to_bytes(4, "little")


def _longer(chunk):
    """Blosc would read as much as the header says."""
    chunk[12:16] = (2**31 - 1).to_bytes(4, "little")


@pytest.mark.parametrize("change", [_larger, _longer])
def test_chunks_that_claim_other_sizes_are_not_unpacked(dataset, monkeypatch, change):
    change_chunk(dataset.path, "output", 1, change)
    monkeypatch.setattr(shards, "_blosc", None)  # nothing is unpacked
    for verify in (True, False):
        with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
            dataset.read("output", 4, 8, verify=verify)


@pytest.mark.parametrize(
    "entry",
    [(0, 2**40), (2**40, 100), (2**63, 2**63), (2**64 - 1, 2**64 - 1), (2**64 - 2, 3), (0, 0)],
    ids=str,
)
def test_an_index_that_lies_is_refused(dataset, entry):
    """Also one with the right checksum, which whoever changes it can write."""
    file = shard_file(dataset.path, "output")
    content = bytearray(file.read_bytes())
    size = shards.index_bytes(dataset.layout.chunkings["output"])
    index = content[-size:-4]
    index[16:32] = np.array(entry, "<u8").tobytes()
    file.write_bytes(content[:-size] + index + shards._crc32c(index).to_bytes(4, "little"))
    for verify in (True, False):
        with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
            Dataset(dataset.path).read("output", 4, 8, verify=verify)


def test_zarr_reads_what_is_written(dataset):
    group = zarr.open_group(dataset.path, mode="r")
    for name in ("input", "output"):
        array = group[name]
        assert (array.chunks, array.shards) == ((4, 16, 16), (12, 16, 16))
        assert np.array_equal(array[:], dataset.read(name, 0, 30))


def test_chunks_beside_each_other_are_read_at_once(dataset, monkeypatch):
    ranges = []

    def counted(place, start, length):
        ranges.append(length)
        return read_range(place, start, length)

    monkeypatch.setattr(shards, "read_range", counted)
    opened = Dataset(dataset.path)
    opened.read("output", 0, 30)
    assert len(ranges) == 6  # each of three shards: its index, its chunks
    opened.read("output", 5, 6)
    assert len(ranges) == 7
    assert sum(ranges[1:6:2]) < 30 * 16 * 16 * 4


def test_an_opened_dataset_can_be_sent_to_another_process(dataset):
    dataset.read("output", 4, 8)
    sent = pickle.loads(pickle.dumps(dataset))
    assert np.array_equal(sent.read("output", 0, 30), dataset.read("output", 0, 30))


def test_a_chunk_without_permission_is_told_as_such(dataset, monkeypatch):
    def refuse(*call, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # an administrator may read everything
    with pytest.raises(TwoscaleError, match="0 cannot be read: permission denied"):
        dataset.read("output", 4, 8)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A dataset that is not written to."""
    return generate(Poisson(), tmp_path_factory.mktemp("small") / "d", resolution=8, samples=3)


@repeatable
@given(st.data())
def test_any_damage_is_told_or_harmless(small, data):
    """Whatever happens to a file, the fields read are the right ones or none."""
    whole = {name: small.read(name, 0, 3) for name in small.arrays}
    files = sorted(file for file in small.path.rglob("*") if file.is_file())
    chosen = data.draw(st.sampled_from(files)).relative_to(small.path)
    content = data.draw(changed((small.path / chosen).read_bytes()) | st.binary(max_size=40))

    def read(path):
        dataset = Dataset(path)
        return {name: dataset.read(name, 0, 3) for name in dataset.arrays}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d"
        shutil.copytree(small.path, path)
        (path / chosen).write_bytes(content)
        found = read_or_refused(lambda: read(path))
    assert found is None or all(np.array_equal(found[name], whole[name]) for name in whole)
