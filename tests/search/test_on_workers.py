"""Candidates as tasks: workers that die of them, nobody who waits for them, and their device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.cluster.tools import Here
from tests.search.fake import space_of
from tests.search.test_fitting import Ticks
from twoscale import TwoscaleError, fit_auto
from twoscale.errors import WorkersError
from twoscale.runtime.tasks import Abandoned, Caller, called_by
from twoscale.search.fitting import FieldFitter
from twoscale.search.on_workers import FitCandidates, FitRequest, FitterOnWorkers
from twoscale.search.space import Candidate
from twoscale.search.trials import Trial
from twoscale.surrogate.inputs import InputReader

QUICK = {"predictor": "affine"}  # a search of few candidates
OPTIONS = {"seed": 0, "device": "cpu", "problem": None, "periodic": None}


@pytest.fixture
def fields(poisson16):
    return poisson16.inputs[:80], poisson16.outputs[:80]


@pytest.fixture
def sides(fields):
    """Training and validation pairs in memory."""
    data = InputReader().split(*fields, seed=0)
    return data.training, data.validation


def found_by(fields, workers, **options):
    return fit_auto(*fields, budget=1e4, workers=workers, **{"device": "cpu"} | QUICK | options)


def test_a_candidate_that_workers_died_of_has_failed_and_the_search_goes_on(fields):
    requests = []

    def is_second(request):
        requests.append(request)
        return len(requests) == 2

    search = found_by(fields, Here(is_second), predictor="kernel", clock=Ticks()).search
    failures = [trial.failure for trial in search.trials]
    assert failures[:3] == [None, "several workers died of it", None]
    assert search.half_error is not None


def test_no_search_begins_with_a_candidate_that_workers_died_of(fields):
    with pytest.raises(WorkersError, match="several workers died of it"):
        found_by(fields, Here(lambda request: True))


def test_half_of_the_samples_that_workers_died_of_have_no_error(fields, sides):
    tasks = Here(lambda request: request.half)
    search = found_by(fields, tasks).search
    assert search.best is not None
    assert search.half_error is None
    space = space_of((16, 16), len(sides[0].inputs))
    fitter = FitterOnWorkers(space, *sides, OPTIONS, tasks=tasks, memory=10**9)
    with pytest.raises(TwoscaleError, match="several workers died of it"):
        fitter.half_error(Candidate())


def test_a_training_in_another_thread_ends_when_nobody_waits(sides, monkeypatch):
    def in_a_pool(fitter, candidate, deadline):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(fitter.progress, "training", 1, 2, "").result()

    monkeypatch.setattr(FieldFitter, "measured", in_a_pool)
    work = FitCandidates(space_of((16, 16), len(sides[0].inputs)), *sides, OPTIONS, 10**9)
    with called_by(Caller(lambda: False, lambda message: None)), pytest.raises(Abandoned):
        work(FitRequest(Trial(Candidate(), ""), None))


def test_workers_use_cpus_by_default(fields, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert found_by(fields, Here(), device="auto").surrogate.device == torch.device("cpu")
    with pytest.raises(TwoscaleError, match="not on cuda"):
        found_by(fields, Here(), device="cuda")
