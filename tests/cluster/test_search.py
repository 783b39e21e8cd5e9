"""A search whose candidates are fitted elsewhere finds what a search here finds."""

from __future__ import annotations

import json
import math

import pytest

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import in_memory
from twoscale.run import auto_run
from twoscale.run.pairs import split_dataset, split_pairs
from twoscale.runtime.threads import one_thread
from twoscale.search import fit_auto
from twoscale.search.journal import Journal
from twoscale.search.on_workers import FitCandidates, FitRequest, FitterOnWorkers, memory_of_each
from twoscale.search.policy import search
from twoscale.search.space import Candidate, SearchSpace
from twoscale.search.trials import Outcome, Trial

QUICK = {"predictor": "affine", "symmetries": "none"}  # a search of few candidates
OPTIONS = {"seed": 0, "device": "cpu", "problem": None, "periodic": None}


@pytest.fixture
def pairs(dataset, workers):
    split = split_dataset(dataset, seed=0)
    found = split_pairs(dataset, split, stored=True, workers=workers)
    return found.training, found.validation


def space_of(pairs):
    training, _ = pairs
    spaces = training.inputs.space, training.outputs.space
    return SearchSpace(*spaces, len(training.inputs))


def asked(candidate, place=0):
    return Trial(candidate, f"candidate {place}", 1.0)


def one_by_one(*candidates):
    rest = [asked(one, place) for place, one in enumerate(candidates)]
    return lambda: rest.pop(0) if rest else None


def test_it_finds_what_a_search_here_finds(dataset, workers, tmp_path, monkeypatch):
    monkeypatch.undo()  # workers cut fields into usual ranges
    options = {"budget": 1e4, "settings": QUICK, "device": "cpu"}
    with one_thread():  # as each worker does
        here = auto_run(dataset, tmp_path / "here", **options)
    there = auto_run(dataset, tmp_path / "there", workers=workers, **options)
    tried = [
        {(one["label"], one["why"]): one["error"] for one in run.search["trials"]}
        for run in (here, there)
    ]
    best = [run.search["trials"][run.search["chosen"]]["error"] for run in (here, there)]
    assert best[1] == pytest.approx(best[0], rel=1e-6, abs=1e-6)
    assert there.search["half_error"] == pytest.approx(here.search["half_error"], rel=1e-5)
    for name in tried[0].keys() & tried[1].keys():
        assert tried[1][name] == pytest.approx(tried[0][name], rel=1e-5, abs=1e-6), name
    weights = [(run.path / "weights.safetensors").read_bytes() for run in (here, there)]
    assert weights[0] == weights[1]


def test_fields_in_memory_travel(workers, poisson16):
    fields = poisson16.inputs[:80], poisson16.outputs[:80]
    here, there = (
        fit_auto(*fields, budget=1e4, device="cpu", workers=one, **QUICK) for one in (None, workers)
    )
    assert there.search.best.error == pytest.approx(here.search.best.error, rel=1e-6, abs=1e-6)
    new = fields[0][:5].numpy()
    assert abs(there.surrogate.predict(new) - here.surrogate.predict(new)).max() < 1e-5


def test_several_candidates_are_fitted_at_a_time_and_the_best_one_travels(pairs, workers):
    fitter = FitterOnWorkers(space_of(pairs), *pairs, OPTIONS, tasks=workers, memory=None)
    candidates = [Candidate(), Candidate(input_variance=0.999), Candidate(code=2)]
    most, running = 0, 0
    following = one_by_one(*candidates)

    def counted():
        nonlocal running, most
        one = following()
        running += one is not None
        most = max(most, running)
        return one

    found = {}
    for one, outcome in fitter.attempts(counted):
        running -= 1
        found[one.reason] = outcome
    assert most == 2
    assert len(found) == 3
    least = min(outcome.error for outcome in found.values())
    assert fitter.least == fitter.best.errors_["validation"] == least


def test_a_candidate_that_cannot_be_fitted_is_a_result(pairs, workers):
    fitter = FitterOnWorkers(space_of(pairs), *pairs, OPTIONS, tasks=workers, memory=None)
    broken = Candidate(predictor="kernel", tuned=(("kernel", "no such"),))
    ((_, outcome),) = fitter.attempts(one_by_one(broken))
    assert isinstance(outcome, TwoscaleError)
    assert "no such" in str(outcome)
    with pytest.raises(TwoscaleError, match="no such"):
        fitter.half_error(broken)


@pytest.mark.parametrize(("memory", "loads"), [(10**9, True), (10**5, False)])
def test_fields_are_loaded_where_they_fit(pairs, memory, loads):
    work = FitCandidates(space_of(pairs), *pairs, OPTIONS, memory)
    outcome, files = work(FitRequest(asked(Candidate()), None, least=math.inf))
    assert in_memory(work.fitter.training.outputs.fields) == loads
    assert outcome.error < 1
    assert "weights.safetensors" in files
    assert work(FitRequest(asked(Candidate()), None, least=outcome.error))[1] is None


def test_memory_is_that_of_each_worker(workers, monkeypatch):
    monkeypatch.setattr("twoscale.search.on_workers.available_memory", lambda: 1000)
    assert memory_of_each(workers, None) == 500
    assert memory_of_each(workers, 800) == 800


class Killed(BaseException):
    """Ends a search at once, as a kill would."""


def test_a_search_that_is_killed_goes_on_and_tries_nothing_twice(dataset, workers, tmp_path):
    options = {"budget": 1e4, "settings": QUICK, "device": "cpu", "workers": workers}
    note, kept = Journal.note, []

    def killed(journal, trials, running):
        note(journal, trials, running)
        if len(trials) == 3:
            kept.extend(trials)
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "note", killed)
        with pytest.raises(Killed):
            auto_run(dataset, tmp_path / "run", **options)
    fitted = []

    def counted(fitter, trial, **ways):
        fitted.append(trial.candidate)
        return request(fitter, trial, **ways)

    request = FitterOnWorkers._request
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitterOnWorkers, "_request", counted)
        run = auto_run(dataset, tmp_path / "run", **options)
    assert not {one.candidate for one in kept} & set(fitted[:-1])  # the last one is on half of them
    errors = [one["error"] for one in run.search["trials"]]
    assert errors[:3] == [one.error for one in kept]
    whole = auto_run(dataset, tmp_path / "whole", **options)
    assert min(errors) == min(one["error"] for one in whole.search["trials"])


class TwoAtATime:
    """Fits nothing; of two candidates at a time the one that was asked for last is ready first."""

    validation_samples, reserve = 200, 0.0

    def __init__(self, judge):
        self.judge, self.time, self.together = judge, 0.0, []

    def clock(self):
        return self.time

    def attempts(self, following):
        running = []
        while True:
            while len(running) < 2 and (one := following()) is not None:
                running.append(one)
            if not running:
                return
            self.together.append([one.candidate for one in running])
            self.time += 1.0
            one = running.pop()
            yield one, self.judge(one.candidate)

    def half_error(self, candidate, deadline=None):
        return 1.0


def test_no_candidate_is_tried_twice_and_trainings_of_one_kind_are_not_together():
    def judge(one):
        if one.predictor == "encoder":
            return Outcome(0.03, 0.03, 0.0, 64, 64, epochs=one.epochs, epoch_seconds=0.1)
        return Outcome(0.04 / (1 + one.code), 0.03, 0.002, 60, 300)

    fitter = TwoAtATime(judge)
    space = Space(Grid((64, 64)))
    found = search(SearchSpace(space, space, 1600), fitter, budget=60.0, clock=fitter.clock)
    names = [one.candidate for one in found.trials]
    assert len(names) == len(set(names)) > 4
    assert max(map(len, fitter.together)) == 2
    assert all([one.predictor for one in both].count("encoder") < 2 for both in fitter.together)
    assert found.stopped


def test_the_journal_holds_all_that_run(tmp_path):
    journal = Journal(tmp_path / "search", lambda: None)
    running = [asked(Candidate(code=k)) for k in range(3)]
    journal.note([], running)
    assert len(json.loads((tmp_path / "search" / "search.json").read_text())["running"]) == 3
    resumed = Journal(tmp_path / "search", lambda: None)
    resumed.resume(device="cpu")
    assert resumed.running == running
