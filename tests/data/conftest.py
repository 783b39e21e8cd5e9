import shutil

import pytest

from twoscale.data import Dataset, description, generate
from twoscale.problems import Poisson

_CHUNK_OF_FOUR = 4 * 16 * 16 * 4  # bytes


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """Thirty Poisson pairs, 16x16, in chunks of four; `dataset` is a copy."""
    path = tmp_path_factory.mktemp("generated") / "d.zarr"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(description, "_CHUNK_BYTES", _CHUNK_OF_FOUR)
        generate(Poisson(), path, resolution=16, samples=30, seed=0)
    return path


@pytest.fixture
def dataset(generated, tmp_path, monkeypatch):
    """Thirty Poisson pairs, 16x16, in chunks of four, to be changed by a test."""
    monkeypatch.setattr(description, "_CHUNK_BYTES", _CHUNK_OF_FOUR)
    return Dataset(shutil.copytree(generated, tmp_path / "d.zarr"))
