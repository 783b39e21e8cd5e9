import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.damage import changed, read_or_refused, repeatable
from twoscale.data import Dataset, generate
from twoscale.errors import TwoscaleError
from twoscale.problems import Poisson
from twoscale.runtime import memory


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**12, 16, 16]},
        {"shape": "all"},
        {"data_type": "float64"},
        {"data_type": ["float32"]},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [30, 16, 16]}}},
        {"chunk_grid": 3},
        {"codecs": []},
        {"codecs": 3},
        {"codecs": ["bytes", "blosc"]},
        {"codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 5}}]},
        {"codecs": [{"name": "bytes", "configuration": 3}, {"name": "blosc"}]},
        {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}},
        {"storage_transformers": [{"name": "x"}]},
        {"node_type": "group"},
        {"zarr_format": 2},
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


def _pipe(chunk):
    os.mkfifo(chunk)


def _link(chunk):
    chunk.symlink_to(chunk.parent.parent.parent / "0" / "0" / "0")


def _larger(chunk):
    """Blosc would unpack as much as the header says, up to 2 GB."""
    content = bytearray((chunk.parent.parent.parent / "0" / "0" / "0").read_bytes())
    content[4:8] = (2**31 - 1).to_bytes(4, "little")
    chunk.write_bytes(content)


@pytest.mark.parametrize(
    "make",
    [_pipe, _link, _larger, lambda chunk: chunk.mkdir(), lambda chunk: chunk.touch()],
    ids=["pipe", "link", "larger", "folder", "empty"],
)
def test_chunks_that_are_no_proper_files(dataset, make):
    chunk = dataset.path / "output" / "c" / "1" / "0" / "0"
    chunk.unlink()
    make(chunk)
    opened = Dataset(dataset.path)
    for verify in (True, False):
        with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
            opened.read("output", 4, 8, verify=verify)


def test_a_chunk_without_permission_is_told_as_such(dataset, monkeypatch):
    def refuse(*call, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # an administrator may read everything
    with pytest.raises(TwoscaleError, match="0 cannot be read: permission denied"):
        dataset.read("output", 4, 8)


def test_parts_of_chunks_are_held_to_their_checksums_too(dataset):
    (dataset.path / "output" / "c" / "1" / "0" / "0").unlink()
    with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
        Dataset(dataset.path).read("output", 5, 6)


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
