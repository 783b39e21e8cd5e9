import json
import shutil

import numpy as np
import pytest
import torch

from twoscale.data import Dataset, generate, import_fields, store
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
        (lambda a: a.pop("distribution"), "is damaged.*lacks distribution"),
        (lambda a: [a.pop(key) for key in ("seed", "solver")], "is damaged.*lacks seed, solver"),
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


@pytest.mark.parametrize("damage", [None, -5], ids=["lost", "one byte"])
def test_whole_chunks_are_held_to_their_checksums(dataset, damage):
    chunk = dataset.path / "output" / "c" / "1" / "0" / "0"
    if damage is None:
        chunk.unlink()
    else:
        content = bytearray(chunk.read_bytes())
        content[damage] ^= 1
        chunk.write_bytes(content)
    opened = Dataset(dataset.path)
    with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
        opened.read("output", 0, 30)
    with pytest.raises(TwoscaleError, match="is damaged: samples 4 to 7 of 'output'"):
        opened.load("output", [5])
    assert opened.read("output", 8, 30).shape == (22, 16, 16)
    values = opened.read("output", 4, 8, verify=False)
    assert not opened.intact("output", 4, values)
    assert opened.intact("input", 4, opened.read("input", 4, 8))


@pytest.mark.parametrize("start", [0, 3, 4, 28])
@pytest.mark.parametrize("stop", [29, 30])
def test_any_range_of_a_sound_dataset_is_read(dataset, start, stop):
    whole = dataset.read("input", 0, 30)
    assert np.array_equal(dataset.read("input", start, stop), whole[start:stop])


@pytest.mark.parametrize("indices", [[-1, 3], [3, 30], [99]])
def test_samples_that_are_not_there_are_told(dataset, indices):
    with pytest.raises(TwoscaleError, match="has samples 0 to 29, asked for"):
        dataset.load("input", indices)


def test_an_unknown_problem_is_no_problem(dataset):
    _edit_attributes(dataset.path, lambda a: a.update(problem="stokes"))
    assert Dataset(dataset.path).problem is None
    assert Dataset(dataset.path).metadata["problem"] == "stokes"


def test_a_dataset_is_told_from_other_folders(dataset, tmp_path):
    assert store.is_dataset(dataset.path)
    shutil.rmtree(dataset.path / "output")
    assert store.is_dataset(dataset.path)
    assert not store.is_dataset(tmp_path)
    assert not store.is_dataset(tmp_path / "none")
    _edit_attributes(dataset.path, lambda a: a.update(format="other"))
    assert not store.is_dataset(dataset.path)


def test_only_datasets_are_replaced(dataset, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("x")
    recipe = {"resolution": 16, "samples": 4}
    for place in (other, other / "mine"):
        with pytest.raises(TwoscaleError, match="is something else and is not replaced"):
            generate(Poisson(), place, **recipe, overwrite=True)
    assert (other / "mine").read_text() == "x"
    assert generate(Poisson(), dataset.path, **recipe, overwrite=True).samples == 4


def test_a_link_stays_a_link(dataset, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(dataset.path)
    generate(Poisson(), link, resolution=16, samples=4, overwrite=True)
    assert link.is_symlink()
    assert Dataset(dataset.path).samples == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.zarr", "link"]


def test_an_import_that_is_interrupted_leaves_nothing(tmp_path):
    values = np.ones((3, 8, 8))
    np.savez(tmp_path / "f.npz", a=values, u=values)

    def interrupt(*call):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_fields(
            [tmp_path / "f.npz"],
            tmp_path / "new" / "d",
            input_key="a",
            output_key="u",
            progress=interrupt,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["f.npz"]
