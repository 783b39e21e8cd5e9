"""Parameters that are out of range, inputs that have no solution, and batches solved in parts."""

import pytest
import torch

from tests.problems.example import load_example
from twoscale import Darcy, TwoscaleError
from twoscale.problems import (
    CNOPoisson,
    CNOWave,
    DarcyFNO,
    GaussianRandomField,
    Helmholtz,
    NavierStokes,
    darcy,
    diffusion,
    helmholtz,
)

POSITIVE = [0, -4.0, float("nan"), float("inf"), "12", True, None]
WRONG = {
    (Darcy, "high"): POSITIVE,
    (Darcy, "low"): POSITIVE,
    (GaussianRandomField, "alpha"): POSITIVE,
    (GaussianRandomField, "tau"): POSITIVE,
    (DarcyFNO, "nodes"): [0, 2, 2.5, True],
    (Helmholtz, "frequency"): [0],
    (Helmholtz, "speed"): [1.0],
    (Helmholtz, "modes"): [0],
    (NavierStokes, "viscosity"): [0],
    (NavierStokes, "time"): [-1.0],
    (NavierStokes, "steps"): [0],
    (CNOPoisson, "waves"): [0],
    (CNOWave, "waves"): [2.5],
    (CNOWave, "speed"): [0],
    (CNOWave, "time"): [-1],
    (load_example().AdvectionDiffusion, "diffusivity"): [-1],
    (load_example().AdvectionDiffusion, "speed"): [-1],
}


@pytest.mark.parametrize(
    ("problem", "name", "value"),
    [(problem, name, value) for (problem, name), values in WRONG.items() for value in values],
)
def test_parameters_out_of_range_are_refused(problem, name, value):
    with pytest.raises(TwoscaleError, match=f"{name} must be"):
        problem(**{name: value})


@pytest.mark.parametrize("problem", [Darcy(), Helmholtz()], ids=lambda p: p.name)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_inputs_that_are_not_positive_are_refused(problem, value):
    inputs = torch.full((3, 12, 12), 20.0)
    inputs[2, 5, 5] = value
    with pytest.raises(TwoscaleError, match="positive everywhere"):
        problem.solve(inputs)


@pytest.mark.parametrize(
    ("problem", "side", "limit"),
    [
        (Darcy(), 20, (diffusion, "_SOLVE_VALUES", 3 * 20 * 20)),
        (Helmholtz(frequency=100.0), 12, (helmholtz, "_SOLVE_VALUES", 2 * 12**3)),
        (DarcyFNO(nodes=25), 9, (darcy, "_FINE_VALUES", 2 * 25 * 25)),
    ],
    ids=["darcy", "helmholtz", "darcy-fno"],
)
def test_parts_of_a_batch_are_solved_as_one(problem, side, limit, monkeypatch):
    grid = problem.grid(side, side)
    whole = problem.pairs(grid, range(5), seed=0)
    monkeypatch.setattr(*limit)
    for one, two in zip(problem.pairs(grid, range(5), seed=0), whole, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-13)
