"""A dataset that has lost one of its files is refused by every command that reads it."""

import shutil

import pytest
import zarr

from tests.cli.conftest import BATCH_VALUES, CHUNK_BYTES
from tests.cli.outcome import contents, refused
from twoscale.data import description, generate, generation
from twoscale.problems import Poisson

FILES = [
    "zarr.json",
    *(f"{side}/zarr.json" for side in ("input", "output")),
    *(f"{side}/c/{shard}/0/0" for side in ("input", "output") for shard in (0, 1)),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A dataset of two shards on each side."""
    path = tmp_path_factory.mktemp("whole") / "p.zarr"
    with pytest.MonkeyPatch.context() as patch:
        _cut_small(patch)
        generate(Poisson(), path, resolution=16, samples=48, seed=0)
    assert sorted(contents(path)) == sorted(FILES)
    return path


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    _cut_small(monkeypatch)


def _cut_small(patch):
    patch.setattr(description, "_CHUNK_BYTES", CHUNK_BYTES)
    patch.setattr(description, "_SHARD_BYTES", 2 * CHUNK_BYTES)
    patch.setitem(generation._BATCH_VALUES, "cpu", BATCH_VALUES)


@pytest.fixture(params=["local", "memory"])
def place(request, whole, tmp_path):
    """Where a copy of the dataset is, and how a file of it is removed."""
    if request.param == "local":
        copy = shutil.copytree(whole, tmp_path / "p.zarr")
        yield copy, lambda name: (copy / name).unlink()
        return
    fsspec = pytest.importorskip("fsspec", reason="needs the package fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    for name, content in contents(whole).items():
        system.pipe_file(f"/data/p.zarr/{name}", content)
    yield "memory://data/p.zarr", lambda name: system.rm_file(f"/data/p.zarr/{name}")
    system.store.clear()


def commands(run, place, out):
    """Return every command that reads a dataset, with what it would write to a folder."""
    return (
        ("check", place),
        ("fit", place, "--method", "two-scale", "--out", out / "r"),
        ("fit", place, "--train-samples", 8, "--method", "global", "--out", out / "r"),
        ("evaluate", run, "--data", place),
        ("predict", run, place, "--out", out / "p.npy"),
    )


@pytest.mark.parametrize("name", FILES)
def test_any_lost_file_is_named(twoscale, run_folder, place, tmp_path, name):
    path, remove = place
    remove(name)
    before = sorted(tmp_path.iterdir())
    for arguments in commands(run_folder, path, tmp_path):
        refused(twoscale(*arguments), f"{path} is damaged", name, "copy all its files again")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kept", FILES[1:])
def test_what_is_left_of_a_dataset_is_no_folder_of_arrays(
    twoscale, run_folder, whole, tmp_path, kept
):
    left = tmp_path / "p.zarr"
    (left / kept).parent.mkdir(parents=True)
    shutil.copy(whole / kept, left / kept)
    for arguments in commands(run_folder, left, tmp_path):
        refused(twoscale(*arguments), f"{left} is damaged", "zarr.json is missing")
    refused(twoscale("import", left, "--out", tmp_path / "d.zarr"))


def test_arrays_of_a_dataset_are_not_read_alone(twoscale, whole, tmp_path):
    """Zarr would fill lost shards with zeros."""
    arrays = (whole / "input", whole / "output")
    out = ("--out", tmp_path / "r")
    refused(
        twoscale("fit", *arrays, *out),
        "is an array of a twoscale dataset",
        f"give the dataset {whole}",
    )
    shutil.copytree(whole, tmp_path / "store" / "p.zarr")
    zarr.open_group(tmp_path / "store", mode="a")
    refused(twoscale("check", tmp_path / "store"), "is an array of a twoscale dataset")


def test_a_description_that_zarr_has_made_up_is_refused(twoscale, run_folder, place, tmp_path):
    """Opening a group for writing puts an empty `zarr.json` where there was none."""
    path, remove = place
    remove("zarr.json")
    zarr.open_group(str(path), mode="a")
    for arguments in commands(run_folder, path, tmp_path):
        refused(twoscale(*arguments), f"{path} is not a twoscale dataset, or its zarr.json is no")
