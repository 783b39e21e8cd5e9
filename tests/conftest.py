"""Fixtures that several test modules share: small sets of fields, made once per session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from tests.browser import ARGUMENTS, BROWSER
from tests.golden import check_golden
from tests.sources import field_pairs
from tests.surrogate.tiny import make
from twoscale import METHODS, Grid, Poisson
from twoscale.fields.source import ArraySource
from twoscale.parts import PARTS
from twoscale.problems import PROBLEMS

torch.set_num_threads(1)  # as tests/__init__.py says

collect_ignore = [] if find_spec("starlette") else ["serve"]  # its fixtures need the extra
if not find_spec("twoscale_lab"):
    collect_ignore.append("lab")


class Dataset(NamedTuple):
    """Pairs of fields (samples, height, width), float32. Tests must not write to them."""

    inputs: Tensor
    outputs: Tensor

    @property
    def batch(self) -> Dataset:
        """The same as field batches (samples, 1, height, width): what everything inside takes."""
        return Dataset(self.inputs[:, None], self.outputs[:, None])


def make_poisson(shape: tuple[int, int], samples: int, *, seed: int = 0) -> Dataset:
    problem = Poisson()
    inputs = problem.sample(Grid(shape), range(samples), seed=seed)
    return Dataset(inputs.float(), problem.solve(inputs).float())


@pytest.fixture(scope="session")
def poisson32() -> Dataset:
    return make_poisson((32, 32), 240)


@pytest.fixture(scope="session")
def poisson16() -> Dataset:
    return make_poisson((16, 16), 200)


@pytest.fixture
def own_parts() -> Iterator[None]:
    """Forget, after a test, the parts and problems that it defines."""
    before = [(table, dict(table)) for table in (PARTS, PROBLEMS)]
    yield
    for table, known in before:
        table.clear()
        table.update(known)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Let torch use two threads, as it would outside the tests."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def arrays(poisson16):
    """Training inputs and outputs, new inputs and outputs, as NumPy arrays."""
    x, u = (fields.numpy() for fields in poisson16)
    return x[:160], u[:160], x[160:], u[160:]


@pytest.fixture(scope="session")
def pairs(poisson16):
    """Training and validation pairs."""
    x, u = poisson16.batch
    return (
        field_pairs(ArraySource(x[:120]), ArraySource(u[:120])),
        field_pairs(ArraySource(x[120:150]), ArraySource(u[120:150])),
    )


@pytest.fixture(scope="session")
def fitted(arrays):
    """Every method, fitted with its equation known."""
    x, u, _, _ = arrays
    return {method: make(method, problem="poisson", seed=2).fit(x, u) for method in METHODS}


@pytest.fixture(scope="session")
def saved(fitted, tmp_path_factory):
    """Every fitted surrogate as a folder."""
    root = tmp_path_factory.mktemp("saved")
    for method, surrogate in fitted.items():
        surrogate.save(root / method)
    return root


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def command_tree():
    """Return the commands of an application; they are made once, which takes 20 ms."""
    from typer.main import get_command  # needs more than the library does

    return cache(get_command)


@pytest.fixture
def twoscale(capsys, monkeypatch, command_tree):
    """Run a command line in this process; give its exit status, output and error output."""
    from twoscale.cli import main  # needs more than the library does

    monkeypatch.setattr("typer.main.get_command", command_tree)

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
def without_pages(monkeypatch):
    """Make fits and reports write empty pages, which takes no time."""
    from twoscale.report.page import GENERATOR  # needs more than the library does

    for name in ("run_page.run_page", "run_report.run_page", "run_report.runs_page"):
        monkeypatch.setattr(f"twoscale.report.{name}", lambda runs: f"<!doctype html>{GENERATOR}")


@pytest.fixture
def without_drawing(monkeypatch):
    """Make figures fully, and write small pictures in their place: most time goes into pixels."""
    from faults.children import small_picture
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", small_picture)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="Write the words of pages anew.")


@pytest.fixture
def golden(request):
    """Compare the words of a page with a reviewed file in `tests/golden`."""
    return partial(check_golden, renew=request.config.getoption("--renew"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless browser; a test that needs one is skipped where there is none.

    It ends with its module: a process can have only one of them open at a time.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    if BROWSER is None:
        pytest.skip("needs the browser chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield opened
        opened.close()
