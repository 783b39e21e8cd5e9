import math
from dataclasses import replace

import pytest

from tests.search.fake import FakeFitter, curved, linear, space_of
from twoscale.errors import TwoscaleError
from twoscale.search.policy import search
from twoscale.search.trials import Outcome

SPACE = space_of((64, 64), 1600, "square")


def run(judge, *, budget=1000.0, space=SPACE, **options):
    fitter = FakeFitter(judge, **options)
    return search(space, fitter, budget=budget, clock=fitter.clock), fitter


def test_it_begins_with_the_cheapest_and_keeps_the_best():
    found, fitter = run(linear)
    first = found.trials[0].candidate
    assert (first.predictor, first.symmetries, first.input_variance) == ("affine", "none", 0.95)
    assert found.best.outcome.error == min(trial.outcome.error for trial in found.trials)
    assert len(set(fitter.fitted)) == len(fitter.fitted)


def test_a_linear_problem_needs_more_input_and_code_only():
    found, _ = run(linear)
    assert found.best.outcome.error < 2e-4
    assert found.best.candidate.input_variance >= 0.999
    assert found.best.candidate.predictor == "affine"


def test_a_curved_problem_gets_a_kernel_on_all_samples_with_symmetries():
    found, fitter = run(curved)
    best = found.best.candidate
    assert (best.predictor, best.samples, best.symmetries) == ("kernel", None, "square")
    kernels = [one for one in fitter.fitted if one.predictor == "kernel"]
    assert kernels[0].samples == 1000
    assert all(one.tuned for one in kernels[1:]), "what the first one found is not looked for again"


def test_symmetries_nobody_declared_are_not_used():
    _, fitter = run(curved, space=space_of((64, 64), 1600))
    assert {one.symmetries for one in fitter.fitted} == {"none"}


@pytest.mark.parametrize("budget", [0.1, 3.0, 10.0, 40.0])
def test_the_budget_is_kept_but_for_the_first_candidate(budget):
    found, fitter = run(curved, budget=budget, cost=lambda one: KIND_SECONDS[one.predictor])
    assert found.trials
    assert fitter.time <= max(budget, KIND_SECONDS["affine"])
    assert found.seconds == fitter.time


KIND_SECONDS = {"affine": 0.5, "affine-mlp": 8.0, "kernel": 2.0, "encoder": 8.0}


def test_without_time_it_says_what_the_next_one_would_take():
    found, _ = run(curved, budget=1.0)
    assert len(found.trials) == 1
    assert "the next candidate, two-scale affine (+ input), would take about 0." in found.stopped


def test_the_same_outcomes_make_the_same_search():
    first, second = (run(curved, budget=30.0)[0] for _ in range(2))
    assert first == second


def test_a_candidate_that_cannot_be_fitted_is_passed_over():
    found, _ = run(curved, broken=lambda one: one.predictor == "kernel")
    failed = [trial for trial in found.trials if trial.outcome is None]
    assert failed
    assert all(trial.failure == "it is broken" for trial in failed)
    assert found.best.candidate.predictor != "kernel"


def test_if_the_first_cannot_be_fitted_nothing_can():
    with pytest.raises(TwoscaleError, match="it is broken"):
        run(curved, broken=lambda one: True)


def test_predictions_that_are_no_numbers_never_win():
    def judge(one):
        return curved(one) if one.predictor == "affine" else Outcome(math.nan, 0, 0, 60, 300)

    found, _ = run(judge)
    assert found.best.candidate.predictor == "affine"
    assert any(trial.failure and "finite" in trial.failure for trial in found.trials)


def test_half_of_the_samples_are_tried_last_if_there_is_time():
    found, fitter = run(curved)
    assert fitter.halves == [found.best.candidate]
    assert found.half_error == 2 * found.best.outcome.error
    short, fitter = run(curved, budget=1.0)
    assert short.half_error is None
    assert fitter.halves == []


def test_a_perfect_fit_ends_the_search():
    found, _ = run(lambda one: Outcome(0.0, 0.0, 0.0, 60, 300))
    assert len(found.trials) == 1


def trained(epoch, *, error=0.2):
    """An encoder that learns in proportion to its epochs; everything else as `curved`."""

    def judge(one):
        if one.epochs is None:
            return curved(one)
        reached = error / one.epochs * 0.9**one.code
        return Outcome(reached, reached, 0.0005, 4096, 300, epoch_seconds=epoch)

    return judge


GPU = space_of((64, 64), 1600, "square", accelerated=True)


def trainings(judge, cost, *, budget=300.0, space=GPU, **options):
    found, fitter = run(judge, space=space, budget=budget, cost=cost, **options)
    return found, [one for one in fitter.fitted if one.epochs]


@pytest.mark.parametrize("epoch", [0.5, 2.0])
@pytest.mark.parametrize("fixed", [0.0, 15.0])
def test_on_a_gpu_an_encoder_is_trained_for_the_rest_of_the_time(epoch, fixed):
    def cost(one):
        return fixed + epoch * one.epochs if one.epochs else 1.0

    found, (probe, training) = trainings(trained(epoch), cost)
    assert probe.epochs == 10
    assert training.epochs >= 40
    assert found.best.candidate == training
    assert 150 < found.seconds <= 300


def test_the_code_of_a_long_training_is_the_best_ones():
    def judge(one):  # a longer code helps all of them
        base = trained(1.0)(one)
        share = 0.5**one.code
        return replace(base, oracle=0.9 * share * base.error, error=share * base.error)

    found, encoders = trainings(judge, lambda one: 1.0 * (one.epochs or 1))
    before = [trial for trial in found.trials if trial.candidate != encoders[-1]]
    best = min(before, key=lambda trial: trial.outcome.error).candidate
    assert encoders[-1].code == best.code


def test_an_encoder_that_is_too_slow_or_hopeless_is_not_trained():
    for judge, epoch in ((trained(10.0), 10.0), (trained(0.5, error=9.0), 0.5)):
        found, encoders = trainings(judge, lambda one, e=epoch: e * (one.epochs or 0.1))
        assert [one.epochs for one in encoders] in ([], [10])
        assert found.best.candidate.predictor == "kernel"


def test_a_short_training_is_not_begun_where_there_is_no_time_for_a_long_one():
    def cost(one):
        return 0.5 * one.epochs if one.epochs else 1.0

    found, encoders = trainings(trained(0.5), cost, budget=300.0)
    assert len(encoders) == 2
    expected = next(trial.expected for trial in found.trials if trial.candidate == encoders[0])
    short, _ = trainings(trained(0.5), cost, budget=3.0 * expected)
    assert all(trial.candidate.epochs is None for trial in short.trials)


def test_a_long_training_that_fails_is_not_tried_again():
    _, encoders = trainings(
        trained(0.5),
        lambda one: 0.5 * (one.epochs or 1),
        broken=lambda one: (one.epochs or 0) > 10,
        budget=2000.0,
    )
    assert len(encoders) == 2
    few = trainings(
        trained(0.5),
        lambda one: 3.0 if (one.epochs or 0) > 10 else 0.5 * (one.epochs or 1),
        broken=lambda one: (one.epochs or 0) > 10,
        budget=200.0,
    )[1]
    assert len(few) == 2, "nor with fewer epochs"


@pytest.mark.parametrize(
    "given", [{"input_variance": 0.99}, {"ridge": 0.1}, {"epochs": 50}, {"patches": 2}]
)
def test_given_settings_leave_out_encoders_that_lack_them(given):
    space = space_of((64, 64), 1600, "square", given, accelerated=True)
    _, encoders = trainings(trained(0.5), lambda one: 1.0, space=space)
    if "input_variance" in given or "ridge" in given:
        assert encoders == []
    if "epochs" in given:
        assert {one.epochs for one in encoders} == {50}


def test_an_encoder_that_was_asked_for_is_trained_for_the_time_there_is():
    space = space_of((64, 64), 1600, "square", {"predictor": "encoder"})
    judge = trained(2.0)
    found, encoders = trainings(judge, lambda one: 2.0 * one.epochs, budget=20.0, space=space)
    assert [one.epochs for one in encoders] == [2, 6], "fewer than four times as many"
    assert found.stopped.startswith(
        "the next candidate, two-scale encoder(7) sym (+ epochs), would take about"
    )
    found, encoders = trainings(judge, lambda one: 2.0 * one.epochs, budget=10.0, space=space)
    assert [one.epochs for one in encoders] == [2]
    assert found.stopped == (
        "the next candidate, two-scale encoder(3) sym (+ epochs), would take about 7.2 s"
    )


def test_what_clearly_lost_is_not_tried_over_and_over():
    def judge(one):
        better = linear(one)
        return replace(better, error=5 * better.error) if one.symmetries != "none" else better

    def few_data(one):
        return replace(judge(one), training_error=0.5 * judge(one).error)

    _, fitter = run(few_data, space=space_of((64, 64), 1600, "square", {"predictor": "affine"}))
    variances = {one.input_variance for one in fitter.fitted if one.symmetries == "none"}
    assert len(variances) == 4
    assert len([one for one in fitter.fitted if one.symmetries != "none"]) <= 2


def interrupted(after):
    """A judge that is interrupted once so many candidates were fitted."""
    fitted = []

    def judge(one):
        fitted.append(one)
        if len(fitted) > after:
            raise KeyboardInterrupt
        return curved(one)

    return judge


def test_an_interrupted_search_has_found_what_it_has_found():
    found, _ = run(interrupted(3))
    assert len(found.trials) == 3
    assert found.stopped == "interrupted"
    assert found.best.outcome is not None
    assert found.half_error is None
    with pytest.raises(KeyboardInterrupt):
        run(interrupted(0))


@pytest.mark.parametrize("problem", [TwoscaleError("no room"), KeyboardInterrupt()])
def test_half_of_the_samples_may_fail(problem):
    class Failing(FakeFitter):
        def half_error(self, candidate):
            raise problem

    fitter = Failing(curved)
    found = search(SPACE, fitter, budget=1000.0, clock=fitter.clock)
    assert found.half_error is None
    assert found.stopped != "interrupted", "everything was tried"
    assert found.best.candidate.predictor == "kernel"
