from __future__ import annotations

from pathlib import Path

import pytest

from twoscale.data import generate
from twoscale.problems import Poisson


@pytest.fixture
def drawn_pages():
    """Let fits and reports draw runs; without it their pages are empty, which takes no time."""


@pytest.fixture(autouse=True)
def empty_pages(request):
    if "drawn_pages" not in request.fixturenames:
        request.getfixturevalue("without_pages")


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
