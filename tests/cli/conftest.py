from __future__ import annotations

from pathlib import Path

import pytest

from twoscale.data import description, generate, generation, places
from twoscale.problems import Poisson


@pytest.fixture
def drawn_pages():
    """Let fits and reports make pages of runs; without it they are empty, which takes no time."""


@pytest.fixture
def drawn_figures():
    """Let figures be drawn; without it small pictures are written in their place."""


@pytest.fixture(autouse=True)
def empty_pages(request):
    for wanted, shortcut in {
        "drawn_pages": "without_pages",
        "drawn_figures": "without_drawing",
    }.items():
        if wanted not in request.fixturenames:
            request.getfixturevalue(shortcut)


@pytest.fixture
def done(twoscale):
    """Run a command line that must succeed; return its output."""

    def run(*arguments: object) -> str:
        outcome = twoscale(*arguments)
        assert outcome.status == 0, outcome.err
        return outcome.out

    return run


CHUNK_BYTES, BATCH_VALUES = 16 * 4 * 16**2, 16 * 16**2


@pytest.fixture
def small_chunks(monkeypatch):
    """Store and generate 16 fields on 16 x 16 nodes at a time, for many chunks of few fields."""
    monkeypatch.setattr(description, "_CHUNK_BYTES", CHUNK_BYTES)
    monkeypatch.setitem(generation._BATCH_VALUES, "cpu", BATCH_VALUES)


@pytest.fixture
def storage(server, small_chunks, monkeypatch):
    """A module's `server`, with an empty bucket `bucket`, told by the environment; nobody waits."""
    for name, value in server.account().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(places.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(description, "_SHARD_BYTES", 2 * CHUNK_BYTES)
    server.empty()
    yield server
    server.heal()


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """A small Poisson dataset; tests must not write to it."""
    path = tmp_path_factory.mktemp("data") / "p16.zarr"
    generate(Poisson(), path, resolution=16, samples=120, seed=0)
    return path


@pytest.fixture(scope="session")
def run_folder(data, tmp_path_factory) -> Path:
    """A finished two-scale run on `data`; tests must not write to it."""
    from twoscale.data import Dataset
    from twoscale.run import fit_run

    path = tmp_path_factory.mktemp("runs") / "r"
    fit_run(Dataset(data), path, method="two-scale", settings={"epochs": 3})
    return path


@pytest.fixture
def unsaved(monkeypatch):
    """Work is never so long that its state is saved, however busy the machine is."""
    for name in ("due", "worthwhile"):
        monkeypatch.setattr(f"twoscale.files.checkpoints.Checkpoint.{name}", lambda self: False)
