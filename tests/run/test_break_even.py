"""Runs are compared with the solver of their equation; those of studies are not."""

import pytest
import torch

from twoscale import Poisson, Surrogate
from twoscale.data import Dataset, generate
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs
from twoscale.fields.samples import as_samples
from twoscale.run import RunRequest, fit_runs
from twoscale.run.break_even import break_even, fit_seconds, prediction_seconds

METRICS = {"timings": {"training": 6.0, "inference": 2.0, "total": 8.0}, "samples": 40}


class Refusing(Poisson):
    """An equation that cannot be solved here."""

    name = "refusing"

    def solve(self, inputs):
        raise TwoscaleError("not here")


@pytest.fixture(scope="module")
def case():
    problem = Poisson()
    x, u = (one.float() for one in problem.pairs(problem.grid(12, 12), range(40), seed=0))
    surrogate = Surrogate("global", predictor="affine", device="cpu").fit(x, u, calibration=False)
    return surrogate, Pairs(as_samples(x, "input"), as_samples(u, "output"))


def test_seconds_are_those_of_the_fit_or_the_search():
    assert fit_seconds(METRICS, None) == 6.0
    assert fit_seconds(METRICS, {"seconds": 60.0}) == 60.0
    calibrated = {"timings": METRICS["timings"] | {"calibration": 3.0}}
    assert fit_seconds(calibrated, {"seconds": 60.0}) == 63.0
    assert prediction_seconds(METRICS) == 0.05
    assert prediction_seconds({"timings": {}}) is None


def test_times_of_the_run_and_the_solver_are_compared(case):
    surrogate, test = case
    known = surrogate.with_problem(Poisson())
    found = break_even(known, test, METRICS, {"seconds": 60.0})["break_even"]
    assert found["fit_seconds"] == 60.0
    assert 0 < found["prediction_seconds"] < 0.05
    inputs, truth = test.tensors()
    away = known.predict_batch(inputs) - truth
    errors = away.flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
    assert found["error"] == pytest.approx(float(torch.median(errors)), rel=1e-5)


@pytest.mark.parametrize("problem", [None, Refusing()])
def test_without_a_solver_nothing_is_said(case, problem):
    surrogate, test = case
    assert break_even(surrogate.with_problem(problem), test, METRICS) == {}


def test_runs_of_studies_have_neither_trust_nor_break_even(tmp_path):
    generate(Poisson(), tmp_path / "d", resolution=12, samples=200)
    settings = {"predictor": "affine"}
    requests = [
        RunRequest(tmp_path / name, "global", settings=settings, calibrates=calibrates)
        for name, calibrates in (("study", False), ("own", True))
    ]
    study, own = fit_runs(Dataset(tmp_path / "d"), requests, device="cpu")
    assert not {"trust", "break_even"} & set(study.metrics)
    assert {"trust", "break_even"} <= set(own.metrics)
    assert own.metrics["trust"]["calibration_samples"] == 10
