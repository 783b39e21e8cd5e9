from __future__ import annotations

import pytest

from twoscale import Poisson
from twoscale.data import generate


@pytest.fixture(scope="session")
def workers():
    """Two worker processes of this machine."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    from twoscale.cluster import connected

    with connected("local:2") as found:
        yield found


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    """Enough Poisson fields for several ranges, in several chunks."""
    path = tmp_path_factory.mktemp("cluster") / "poisson.zarr"
    return generate(Poisson(), path, resolution=16, samples=300)


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    """Cut these few fields into several ranges, here; ranges travel with the tasks."""
    monkeypatch.setattr("twoscale.fields.source._RANGE_VALUES", 16 * 16 * 32)
    monkeypatch.setattr("twoscale.fields.source._RANGE_SAMPLES", 32)
    monkeypatch.setattr("twoscale.fields.source._CHUNK_VALUES", 16 * 16 * 32)
