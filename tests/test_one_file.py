"""A predictor, a representation and a problem, each one file of an installed package."""

import subprocess
import sys

import pytest

PREDICTOR = '''
from typing import Annotated

from twoscale import CodePredictor
from twoscale.predictors import PredictorCost
from twoscale.settings import whole


class Nearest(CodePredictor):
    """The mean output code of the training samples with the nearest input codes."""

    name = "nearest-samples"
    title = "nearest samples"
    closed_form = True
    cost = PredictorCost(lambda sizes: 1.0, after=("affine",))

    def __init__(self, *, near: Annotated[int, whole("samples that are averaged")] = 3):
        super().__init__()
        self.near = near

    def prepare(self, training, validation, decoder, seed):
        self.restore({"seen": training.inputs, "known": training.targets})

    def restore(self, tensors):
        for name, codes in tensors.items():
            self.register_buffer(name, codes)
        return self

    def forward(self, codes):
        distances = (codes[:, None] - self.seen).square().sum(2)
        places = distances.topk(self.near, largest=False).indices
        return self.known[places].mean(1)
'''
REPRESENTATION = '''
from typing import Annotated

from twoscale import Chain, PatchPCA, RestrictedPCA
from twoscale.representation import AsMethod, CodeGrowth
from twoscale.settings import whole


class Halves(Chain):
    """A coarse PCA, then a PCA of each half."""

    name = "halves"
    title = "coarse PCA, then a PCA per half"
    as_method = AsMethod("Two halves", CodeGrowth(sized=False))

    def __init__(self, *, rough: Annotated[int, whole("coarse modes")] = 4):
        stages = {"coarse": RestrictedPCA(rough), "residual": PatchPCA(4, patches=(2, 1))}
        super().__init__(stages)
'''
PROBLEM = '''
from dataclasses import dataclass
from typing import ClassVar

from twoscale import Poisson


@dataclass(frozen=True)
class Doubled(Poisson):
    """The Poisson equation with twice the right side."""

    name: ClassVar[str] = "doubled"

    def solve(self, inputs):
        return super().solve(2 * inputs)

    def residual(self, inputs, outputs):
        return super().residual(2 * inputs, outputs)
'''
ENTRIES = """
[twoscale.predictors]
nearest-samples = own_predictor:Nearest
[twoscale.representation]
halves = own_representation:Halves
[twoscale.problems]
doubled = own_problem:Doubled
"""
STUDY = """
title: Own
question: Is everything found?
seeds: [0]
resolution: 16
samples: 60
problem: doubled
cases:
  - {method: halves, settings: {predictor: nearest-samples, near: 2, rough: 3}}
small: {resolution: {16: 8}, samples: 50, seeds: [0]}
tables: [{name: all, title: All, columns: [mre]}]
figures: []
"""
USE = """
import sys
import warnings
from pathlib import Path

import numpy as np

from twoscale import Surrogate, fit_auto
from twoscale.problems import get_problem

warnings.simplefilter("error")
folder = Path(sys.argv[1])
problem = get_problem("doubled")
grid = problem.grid(12, 12)
x = problem.sample(grid, range(80), seed=0)
u = problem.solve(x)
own = {"predictor": "nearest-samples", "near": 2, "rough": 3}
fitted = Surrogate("halves", problem="doubled", device="cpu", **own)
fitted.fit(x, u).save(folder / "saved")
np.save(folder / "new.npy", x[:5].numpy())
np.save(folder / "predicted.npy", fitted.predict(x[:5].numpy()))
fitted.export(folder / "exported.pt2")

def tried(**settings):
    ticks = iter(range(10**6))
    found = fit_auto(x, u, budget=0.5, clock=lambda: 1e-3 * next(ticks), **settings)
    return [(trial.candidate.chain, trial.candidate.predictor) for trial in found.search.trials]


assert ("two-scale", "nearest-samples") in tried(near=2)
assert ("halves", "affine") in tried(rough=3, predictor="affine")

from twoscale_lab.study.catalogue import parse_study
from twoscale_lab.study.runner import run_study

study = parse_study((folder / "study.yaml").read_text(), name="own")
outcome = run_study(study, folder / "study", device="cpu")
assert not outcome.failed
print(outcome.record["cells"][0]["case"])
"""
LOAD = """
import sys
from pathlib import Path

import numpy as np

from twoscale import Surrogate

folder = Path(sys.argv[1])
loaded = Surrogate.load(folder / "saved", device="cpu")
expected = np.load(folder / "predicted.npy")
np.testing.assert_array_equal(loaded.predict(np.load(folder / "new.npy")), expected)
print(loaded.problem.name, loaded.method, loaded.settings["near"], loaded.settings["rough"])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A package that looks installed: three files and their entry points."""
    folder = tmp_path_factory.mktemp("installed")
    texts = {"predictor": PREDICTOR, "representation": REPRESENTATION, "problem": PROBLEM}
    for name, text in texts.items():
        (folder / f"own_{name}.py").write_text(text)
    (folder / "study.yaml").write_text(STUDY)
    (folder / "own-1.0.dist-info").mkdir()
    (folder / "own-1.0.dist-info" / "METADATA").write_text("Name: own\nVersion: 1.0\n")
    (folder / "own-1.0.dist-info" / "entry_points.txt").write_text(ENTRIES)
    return folder


def run(folder, *words):
    """Return what Python prints, with the package installed."""
    roots = [str(folder), *(path for path in sys.path if path)]
    environment = {"PYTHONPATH": ":".join(roots), "PATH": "", "HOME": str(folder), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_they_are_found_in_help(folder):
    names = run(folder, "-m", "twoscale", "fit", "--help")
    assert "halves" in names
    assert "nearest-samples" in names
    assert "doubled" in run(folder, "-m", "twoscale", "generate", "--help")


def test_they_are_fitted_searched_studied_saved_exported_and_loaded(folder):
    pytest.importorskip("twoscale_lab")
    used = run(folder, "-c", USE, str(folder))
    assert "doubled-16 halves near=2 predictor=nearest-samples rough=3" in used
    assert (folder / "exported.pt2").is_file()
    assert run(folder, "-c", LOAD, str(folder)).split() == ["doubled", "halves", "2", "3"]


def test_their_settings_are_checked(folder):
    words = ("-m", "twoscale", "generate", "doubled", "--samples", "30", "--resolution", "8")
    run(folder, *words, "--out", "data.zarr")
    fit = ("fit", "data.zarr", "--method", "halves", "--set", "predictor=nearest-samples")
    out = ("--out", "run", "--set")
    done = run(folder, "-m", "twoscale", *fit, *out, "near=4", "--json")
    assert '"mre"' in done
    with pytest.raises(AssertionError, match="near must be a whole number of at least 1, got '0'"):
        run(folder, "-m", "twoscale", *fit, *out, "near=0", "--overwrite")
