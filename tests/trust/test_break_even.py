"""When a fit has paid off: the arithmetic, and a solver that is as wrong as the surrogate."""

import math

import pytest
import torch

from twoscale.fields.source import ArraySource
from twoscale.operators.context import FieldPairs
from twoscale.problems import Darcy, NavierStokes, Poisson
from twoscale.trust import break_even
from twoscale.trust.break_even import FULL, BreakEven, few_steps, needed_steps, solver_time


@pytest.mark.parametrize(
    ("prediction", "solver", "count"),
    [(0.001, 0.003, 5000), (0.0, 3.0, 4), (0.003, 0.003, None), (0.003, 0.001, None)],
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
    return inputs, outputs, FieldPairs(*sources)


@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_half_of_the_fields_are_solved_as_well_and_not_better_than_needed(error):
    inputs, outputs, _ = pairs(Darcy())
    steps = needed_steps(Darcy(), inputs, outputs, error)

    def median(count):
        away = (few_steps(Darcy(), inputs, count) - outputs).flatten(1).norm(dim=1)
        return float((away / outputs.flatten(1).norm(dim=1)).median())

    assert median(steps) <= error
    assert steps == 1 or median(steps - 1) > error


def given_seconds(monkeypatch, full, steps):
    """Let the full solver and the steps take these times."""
    taken = iter((full, steps))
    monkeypatch.setattr(break_even, "_seconds", lambda solve, fields: next(taken))


@pytest.mark.parametrize("problem", [Darcy(), Poisson()])
def test_the_faster_way_is_taken(problem, monkeypatch):
    _, outputs, test = pairs(problem)

    def predict(fields):
        return 0.98 * outputs[: len(fields), None].float()

    given_seconds(monkeypatch, 2.0, 1.0)
    found = solver_time(problem, predict, test)
    assert found.seconds == 1.0
    assert found.solver.endswith("of conjugate gradients")
    assert found.error == pytest.approx(0.02, rel=1e-3)
    given_seconds(monkeypatch, 1.0, 2.0)
    assert solver_time(problem, predict, test).solver == FULL


def test_another_equation_or_no_error_leaves_the_full_solver():
    _, _, flow = pairs(NavierStokes(), 2)
    assert solver_time(NavierStokes(), lambda fields: fields, flow).solver == FULL
    _, _, test = pairs(Darcy(), 2)
    found = solver_time(Darcy(), lambda fields: torch.full_like(fields, torch.nan), test)
    assert found.solver == FULL
    assert math.isnan(found.error)
    assert found.seconds > 0
