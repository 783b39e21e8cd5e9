import pytest

from twoscale.data import description, generate
from twoscale.problems import Poisson


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """Thirty Poisson pairs, 16x16, in chunks of four."""
    monkeypatch.setattr(description, "_CHUNK_BYTES", 4 * 16 * 16 * 4)
    return generate(Poisson(), tmp_path / "d.zarr", resolution=16, samples=30, seed=0)
