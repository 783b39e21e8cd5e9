import errno
import shutil

import numpy as np
import pytest
import torch

from tests.data.tools import change_chunk, edit_description, flip
from twoscale.data import Dataset, description, generate, store
from twoscale.data.description import reading_samples
from twoscale.errors import (
    ResumableError,
    TwoscaleError,
    UnreachableDataError,
    UnreadableDataError,
)
from twoscale.problems import Poisson


@pytest.fixture
def reads(monkeypatch):
    """The (array, start, stop) of each call of `Dataset.read`; stretches are of one chunk."""
    calls = []
    read = Dataset.read

    def counted(self, name, start, stop, **options):
        calls.append((name, start, stop))
        return read(self, name, start, stop, **options)

    monkeypatch.setattr(store, "chunk_length", lambda *sides: 4)
    monkeypatch.setattr(Dataset, "read", counted)
    return calls


PARTS = {
    "apart": [[0, 1, 2], [20, 21]],
    "in any order": [[29, 3, 14], [13, 2], [7]],
    "overlapping": [[1, 2, 3, 4], [3, 4, 5], range(30)],
    "with repetitions": [[5, 1, 5], [5]],
    "with an empty one": [[], [9, 8]],
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_parts_are_loaded_sorted_and_each_block_is_read_once(dataset, reads, parts):
    whole = torch.from_numpy(dataset.read("output", 0, 30))[:, None]
    reads.clear()
    loaded = dataset.load_parts("output", [np.array(part, dtype=int) for part in parts])
    blocks = {}
    for index in sorted({index for part in parts for index in part}):
        blocks.setdefault(index // 4, []).append(index)
    assert sorted(reads) == [("output", one[0], one[-1] + 1) for one in blocks.values()]
    assert len(loaded) == len(parts)
    for fields, part in zip(loaded, parts, strict=True):
        assert fields.dtype == torch.float32
        assert torch.equal(fields, whole[sorted(part)])


@pytest.mark.parametrize("indices", [[30, 3], [-1], [0, 10**30], ["x"], [None], [[1, 2], [3]]])
def test_samples_that_are_not_there_are_told(dataset, reads, indices):
    with pytest.raises(TwoscaleError, match="samples 0 to 29"):
        dataset.load_parts("input", [[1, 2], indices])
    assert reads == []


def test_stored_fields_are_what_is_loaded_on_every_pass(dataset, reads):
    chosen = [28, 1, 13, 2, 14]
    stored = dataset.fields("output", chosen)
    (loaded,) = dataset.load_parts("output", [chosen])
    reads.clear()
    assert stored.shape == (5, 1, 16, 16)
    for passes in (1, 2):
        chunks = list(stored.chunks())
        assert [len(chunk) for chunk in chunks] == [2, 2, 1]
        assert torch.equal(torch.cat(chunks), loaded)
        assert len(reads) == 3 * passes


def test_ranges_of_few_samples_are_read_in_the_same_stretches(dataset, reads):
    chosen = [1, 2, 13, 14, 28]  # one range and one chunk, for which all fields are not held
    (loaded,) = dataset.load_parts("output", [chosen])
    reads.clear()
    stored = dataset.fields("output", chosen)
    assert stored.ranges() == [slice(0, 5)]
    assert torch.equal(torch.cat(list(stored.read(slice(0, 5)))), loaded)
    assert reads == [("output", 1, 3), ("output", 13, 15), ("output", 28, 29)]


@pytest.mark.usefixtures("reads")
def test_a_damaged_block_is_told_whoever_reads_it(dataset):
    change_chunk(dataset.path, "output", 1, flip)
    opened = Dataset(dataset.path)
    message = "is damaged: samples 4 to 7 of 'output' cannot be read"
    with pytest.raises(TwoscaleError, match=message):
        opened.load_parts("output", [[0, 1], [20, 5]])
    with pytest.raises(TwoscaleError, match=message):
        list(opened.fields("output", [5, 20]).chunks())
    blocks = opened.blocks("output", np.array([0, 5]))
    assert next(blocks)[0] == 0
    with pytest.raises(TwoscaleError, match=message):
        next(blocks)
    assert [len(part) for part in opened.load_parts("output", [[0, 1], [20]])] == [2, 1]


def test_what_is_no_store_is_told(tmp_path):
    with pytest.raises(TwoscaleError, match="does not exist"):
        Dataset(tmp_path / "none.zarr")
    (tmp_path / "x").write_text("hello")
    with pytest.raises(TwoscaleError, match="not a readable Zarr group"):
        Dataset(tmp_path / "x")


def test_whole_chunks_are_held_to_their_checksums(dataset):
    change_chunk(dataset.path, "output", 1, flip)
    opened = Dataset(dataset.path)
    for read in (lambda: opened.read("output", 0, 30), lambda: opened.load("output", [5])):
        with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
            read()
    assert opened.read("output", 8, 30).shape == (22, 16, 16)
    values = opened.read("output", 4, 8, verify=False)
    assert not opened.intact("output", 4, values)
    assert opened.intact("input", 4, opened.read("input", 4, 8))


def test_a_dataset_is_told_from_other_folders(dataset, tmp_path):
    assert description.is_dataset(dataset.path)
    shutil.rmtree(dataset.path / "output")
    assert description.is_dataset(dataset.path)
    assert not description.is_dataset(tmp_path)
    assert not description.is_dataset(tmp_path / "none")
    edit_description(dataset.path, lambda a: a.update(format="other"))
    assert not description.is_dataset(dataset.path)


def test_only_datasets_are_replaced(dataset, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("x")
    recipe = {"resolution": 16, "samples": 4}
    for place in (other, other / "mine"):
        with pytest.raises(TwoscaleError, match="is something else, or holds other files too"):
            generate(Poisson(), place, **recipe, overwrite=True)
    assert (other / "mine").read_text() == "x"
    assert generate(Poisson(), dataset.path, **recipe, overwrite=True).samples == 4


def test_held_fields_are_those_on_disk_and_read_once(dataset, reads):
    parts = ([5, 1, 3], [0], range(6))
    before = [dataset.load_parts(name, parts) for name in ("input", "output")]
    dataset.cache()
    reads.clear()
    after = [dataset.load_parts(name, parts) for name in ("input", "output")]
    assert reads == []
    for one, other in zip(before, after, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_dataset_that_vanishes_may_come_back(dataset):
    """As when a disk is away; a chunk alone is damage."""
    (dataset.path / "output/c/0/0/0").unlink()
    with pytest.raises(UnreadableDataError, match="is damaged: samples") as damage:
        dataset.load("output", [0])
    assert not isinstance(damage.value, ResumableError)
    shutil.rmtree(dataset.path)
    with pytest.raises(UnreachableDataError, match="is no longer there: make its disk available"):
        dataset.load("output", [0])


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (OSError(errno.EIO, "Input/output error"), UnreachableDataError),
        (OSError("Can't read data (inflate() failed)"), UnreadableDataError),  # as h5py says it
        (OSError(-101, "NetCDF: HDF error"), UnreadableDataError),
        (ValueError("not a number"), UnreadableDataError),
        (MemoryError(), TwoscaleError),
    ],
)
def test_only_what_the_system_says_may_pass(cause, kind):
    with pytest.raises(TwoscaleError) as caught, reading_samples():
        raise TwoscaleError("f cannot be read") from cause
    assert type(caught.value) is kind
    assert str(caught.value) == "f cannot be read"


def test_an_array_that_cannot_be_opened_now_may_be_opened_later(dataset, monkeypatch):
    def fail(folder):
        raise TwoscaleError("zarr.json cannot be read") from OSError(errno.EIO, "")

    monkeypatch.setattr("twoscale.data.shards.read_json_at", fail)
    with pytest.raises(UnreachableDataError, match=r"is damaged: zarr\.json cannot be"):
        Dataset(dataset.path)
