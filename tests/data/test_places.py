"""Where a dataset lies: paths and URLs, and what is refused before a server is asked."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from twoscale.data import Dataset, generate, import_fields
from twoscale.data.direct import is_stored
from twoscale.data.kinds import ContentKind, kind_of
from twoscale.data.places import URL, place_of
from twoscale.errors import TwoscaleError
from twoscale.problems import Poisson


@pytest.mark.parametrize("given", ["s3://b/data/p.zarr", Path("s3://b/data/p.zarr")])
def test_urls_are_told_from_paths(given):
    place = place_of(given)
    assert place == URL("s3", "b/data/p.zarr") == place_of(place) == place.resolve()
    assert str(place) == "s3://b/data/p.zarr"
    assert place.name == "p.zarr"
    assert str(place / "input" / "zarr.json") == "s3://b/data/p.zarr/input/zarr.json"
    assert str(place.with_name(".w")) == "s3://b/data/.w"
    assert str(URL("memory", "d").with_name("e")) == "memory://e"
    assert pickle.loads(pickle.dumps(place)) == place


@pytest.mark.parametrize("text", ["data/p.zarr", "/a/b", "C:/a", "a:b", "no/s3://b", "x y://b"])
def test_paths_stay_paths(text):
    assert place_of(text) == Path(text)


@pytest.mark.parametrize("text", ["file:///a/b", "local:///a/b", Path("file:///a/b")])
def test_urls_of_local_files_are_paths(text):
    assert place_of(text) == Path("/a/b")


def test_a_folder_that_is_there_is_no_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    assert place_of(Path("s3:/b")) == Path("s3:/b")
    assert place_of("s3://b") == URL("s3", "b")


def test_a_url_needs_a_name():
    with pytest.raises(TwoscaleError, match="memory:// names no place"):
        place_of("memory://")


def test_a_url_is_that_of_a_dataset():
    assert kind_of(Path("s3://b/p.zarr")) is ContentKind.DATASET
    assert is_stored("memory://p.zarr")


@pytest.mark.parametrize("files", ["s3://b/f.npz", [Path("s3://b/a.npy"), "u.npy"]])
def test_only_datasets_are_read_from_services(tmp_path, files):
    with pytest.raises(TwoscaleError, match=r"^s3://b/.* from which only datasets are read"):
        import_fields(files, tmp_path / "d")


def test_a_kind_that_fsspec_does_not_know():
    pytest.importorskip("fsspec")
    with pytest.raises(TwoscaleError, match=r"^nosuch://x is of a kind that fsspec"):
        Dataset("nosuch://x")


@pytest.mark.parametrize(("protocol", "extra"), [("s3", "remote"), ("gs", "gs")])
def test_a_missing_package_is_named(monkeypatch, protocol, extra):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    words = rf"'fsspec': pip install 'twoscale\[{extra}\]'"
    with pytest.raises(TwoscaleError, match=words):
        Dataset(f"{protocol}://b/p.zarr")
    with pytest.raises(TwoscaleError, match=words):
        generate(Poisson(), f"{protocol}://b/p.zarr", resolution=16, samples=2)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ("s3", r"'s3fs': .*twoscale\[remote\]"),
        ("gs", r"'gcsfs': .*twoscale\[gs\]"),
        ("abfs", "^abfs://b/p.zarr needs another package"),
    ],
)
def test_a_missing_package_for_a_service_is_named(monkeypatch, protocol, words):
    fsspec = pytest.importorskip("fsspec")

    def missing(*call, **options):
        raise ImportError("Install it to access this")

    monkeypatch.setattr(fsspec, "filesystem", missing)
    with pytest.raises(TwoscaleError, match=words):
        Dataset(f"{protocol}://b/p.zarr")


def test_local_datasets_need_neither_zarr_nor_fsspec(tmp_path):
    code = f"""
import sys
sys.modules.update(zarr=None, fsspec=None, s3fs=None)
from twoscale.data import generate
from twoscale.problems import Poisson
assert generate(Poisson(), {str(tmp_path / "d")!r}, resolution=8, samples=3).samples == 3
"""
    subprocess.run([sys.executable, "-c", code], check=True)
