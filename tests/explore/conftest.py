"""Small runs and their page, made once for all tests of the room."""

from __future__ import annotations

import re
from importlib.resources import files

import numpy as np
import pytest

from twoscale import Darcy, Poisson
from twoscale.data import Reading, generate, open_data
from twoscale.explore.page import write_page
from twoscale.run import fit_run

SCRIPTS = re.findall(
    r"<!--(\w+\.js)-->",
    (files("twoscale.explore") / "front" / "page.html").read_text(encoding="utf-8"),
)
"""The scripts of a page in the order in which they run."""
RUNS = {
    "smooth": ("poisson", "two-scale", {"predictor": "affine"}),
    "seamless": ("poisson", "conforming", {"predictor": "affine", "code_size": 60}),
    "media": ("darcy", "two-scale", {"predictor": "affine-mlp", "epochs": 2}),
    "network": ("poisson", "fno", {"epochs": 1, "width": 4, "layers": 1, "modes": 4}),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of four tiny runs; tests must not write to it."""
    place = tmp_path_factory.mktemp("explore")
    data = {
        "poisson": generate(Poisson(), place / "p.zarr", resolution=24, samples=240, seed=0),
        "darcy": generate(Darcy(), place / "d.zarr", resolution=20, samples=240, seed=0),
    }
    for name, (problem, method, settings) in RUNS.items():
        fit_run(data[problem], place / "runs" / name, method=method, settings=settings)
    return place / "runs"


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """The page of a run with two input channels, two parameters and three output channels."""
    place = tmp_path_factory.mktemp("many")
    random = np.random.default_rng(0)
    x = 0.1 * random.standard_normal((80, 2, 14, 18)).cumsum(2).cumsum(3).astype(np.float32)
    p = random.random((80, 2)).astype(np.float32)
    u = np.stack([x[:, 0] * (1 + p[:, :1, None]), x[:, 1].cumsum(1), x[:, 0] - x[:, 1]], 1)
    np.savez(place / "pairs.npz", a=x, u=u, p=p)
    data = open_data(place / "pairs.npz", Reading(inputs=("a",), outputs=("u",), parameters=("p",)))
    fit_run(data, place / "many", method="local", settings={"predictor": "affine"})
    return write_page([place / "many"], place / "page.html")


@pytest.fixture(scope="session")
def written(folder, tmp_path_factory):
    """The page of all four runs, and what is known of it."""
    out = tmp_path_factory.mktemp("page") / "explore.html"
    return write_page([folder / name for name in RUNS], out)


def wait_for(tab, condition):
    """Wait until a condition is true; the page's policy forbids what Playwright does for it."""
    for _ in range(200):
        if tab.evaluate(condition):
            return
        tab.wait_for_timeout(25)
    raise AssertionError(f"{condition} did not become true")
