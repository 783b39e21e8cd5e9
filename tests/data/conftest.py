import shutil

import pytest

from twoscale.data import Dataset, description, generate
from twoscale.problems import Poisson

_CHUNK_OF_FOUR = 4 * 16 * 16 * 4  # bytes


def _cut_small(patch):
    """Store 16x16 fields in chunks of four and shards of twelve."""
    patch.setattr(description, "_CHUNK_BYTES", _CHUNK_OF_FOUR)
    patch.setattr(description, "_SHARD_BYTES", 3 * _CHUNK_OF_FOUR)


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """Thirty Poisson pairs, 16x16, in chunks of four and shards of twelve; `dataset` is a copy."""
    path = tmp_path_factory.mktemp("generated") / "d.zarr"
    with pytest.MonkeyPatch.context() as patch:
        _cut_small(patch)
        generate(Poisson(), path, resolution=16, samples=30, seed=0)
    return path


@pytest.fixture
def dataset(generated, tmp_path, monkeypatch):
    """Thirty Poisson pairs, 16x16, in chunks of four, to be changed by a test."""
    _cut_small(monkeypatch)
    return Dataset(shutil.copytree(generated, tmp_path / "d.zarr"))
