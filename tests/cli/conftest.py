from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from twoscale.cli import main
from twoscale.data import generate
from twoscale.problems import Poisson
from twoscale.report.run_page import FOOTER


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def twoscale(capsys, monkeypatch):
    """Run a command line in this process; give its exit status, output and error output."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["twoscale", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture
def drawn_pages():
    """Let fits and reports draw runs; without it their pages are empty, which takes no time."""


@pytest.fixture(autouse=True)
def empty_pages(request, monkeypatch):
    if "drawn_pages" not in request.fixturenames:
        for name in ("run_page.run_page", "run_report.run_page", "run_report.runs_page"):
            monkeypatch.setattr(f"twoscale.report.{name}", lambda runs: f"<!doctype html>{FOOTER}")


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
