"""When a fit has paid off: the arithmetic, and a solver that is as wrong as the surrogate."""

import math

import pytest
import torch

from tests.sources import field_pairs
from twoscale.fields.source import ArraySource
from twoscale.problems import Darcy, NavierStokes, Poisson
from twoscale.trust import break_even
from twoscale.trust.break_even import FULL, BreakEven, compared_times, few_steps, needed_steps


@pytest.mark.parametrize(
    ("prediction", "solver", "count"),
    [
        (0.001, 0.003, 5000),
        (0.0, 3.0, 4),
        (0.0, 0.101, 100),
        (0.0, 0.007, 1400),
        (0.0, 0.00123, 8100),
        (0.003, 0.003, None),
        (0.003, 0.001, None),
    ],
)
def test_the_fit_is_paid_by_what_predictions_save(prediction, solver, count):
    found = BreakEven(prediction, solver, FULL, 0.01, fit_seconds=10.0)
    assert found.paid_off_after == count
    assert found.as_dict() == {
        "prediction_seconds": prediction,
        "solver_seconds": solver,
        "solver": FULL,
        "error": 0.01,
        "fit_seconds": 10.0,
        "paid_off_after": count,
    }


def pairs(problem, count=12):
    inputs, outputs = problem.pairs(problem.grid(17, 17), range(count), seed=0)
    sources = [ArraySource(one.float()[:, None]) for one in (inputs, outputs)]
    return inputs, outputs, field_pairs(*sources)


@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_half_of_the_fields_are_solved_as_well_and_not_better_than_needed(error):
    inputs, outputs, _ = pairs(Darcy())
    steps = needed_steps(Darcy(), inputs[:, None], outputs, error)

    def median(count):
        away = (few_steps(Darcy(), inputs[:, None], count) - outputs).flatten(1).norm(dim=1)
        return float((away / outputs.flatten(1).norm(dim=1)).median())

    assert median(steps) <= error
    assert steps == 1 or median(steps - 1) > error


def given_seconds(monkeypatch, *seconds):
    """Let the full solver, the steps and predictions take these times; return their batches."""
    taken, batches = iter(seconds), []

    def batch_seconds(solve, fields):
        batches.append(len(fields))
        return next(taken)

    monkeypatch.setattr(break_even, "batch_seconds", batch_seconds)
    return batches


@pytest.mark.parametrize("problem", [Darcy(), Poisson()])
def test_the_faster_way_is_taken(problem, monkeypatch):
    _, outputs, test = pairs(problem)

    def predict(fields):
        return 0.98 * outputs[: len(fields), None].float()

    batches = given_seconds(monkeypatch, 2.0, 1.0, 0.5)
    found = compared_times(problem, predict, test)
    assert len(batches) == 3
    assert len(set(batches)) == 1
    assert (found.prediction_seconds, found.solver_seconds) == (0.5, 1.0)
    assert found.solver.endswith("of conjugate gradients")
    assert found.error == pytest.approx(0.02, rel=1e-3)
    given_seconds(monkeypatch, 1.0, 2.0, 0.5)
    assert compared_times(problem, predict, test).solver == FULL


def test_the_least_of_some_repeats_after_a_first_call_counts(monkeypatch):
    """The first call loads libraries, and others may be disturbed."""
    clock, taken = [0.0], iter([0.4, 0.09, 0.2, 0.08, 0.3, 0.1])
    monkeypatch.setattr(break_even, "now", lambda: clock[0])

    def solve(fields):
        clock[0] += next(taken)

    assert break_even.batch_seconds(solve, torch.ones(4, 1)) == pytest.approx(0.02)
    taken = iter([7.0])  # it is not repeated
    assert break_even.batch_seconds(solve, torch.ones(4, 1)) == pytest.approx(1.75)


def test_another_equation_or_no_error_leaves_the_full_solver():
    _, _, flow = pairs(NavierStokes(), 2)
    assert compared_times(NavierStokes(), lambda inputs: inputs.fields, flow).solver == FULL
    _, _, test = pairs(Darcy(), 2)
    found = compared_times(Darcy(), lambda inputs: torch.full_like(inputs.fields, torch.nan), test)
    assert found.solver == FULL
    assert math.isnan(found.error)
    assert found.solver_seconds > 0
