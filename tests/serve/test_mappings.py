"""What the vectors of UM-Bridge mean."""

import numpy as np
import pytest
import torch

from twoscale import Darcy, Grid, Helmholtz, Poisson, TwoscaleError
from twoscale.domain.space import Space
from twoscale.serve.mappings import InputMap, KarhunenLoeve, Points, input_map, lattice

GRID = Grid((9, 12))
SPACE = Space(GRID)


def plane(grid):
    """A field that is linear in rows and columns, and its values at points."""
    rows, columns = (torch.arange(n) * h for n, h in zip(grid.shape, grid.spacing, strict=True))
    field = 2 * rows[:, None] - 3 * columns + 1
    return field.double()[None, None], lambda at: 2 * at[:, 0] - 3 * at[:, 1] + 1


# Points


def test_linear_fields_are_interpolated_exactly():
    field, value = plane(GRID)
    at = np.random.default_rng(0).random((50, 2))
    at[:4] = [[0, 0], [1, 1], [0, 1], [0.5, 1]]
    np.testing.assert_allclose(Points.on(GRID, at)(field)[0], value(at), atol=1e-6)


def test_nodes_are_read_as_they_are():
    fields = torch.randn(2, 3, *GRID.shape, dtype=torch.float64)
    at = [[3 / 8, 5 / 11]]
    found = Points.on(GRID, at)(fields)
    torch.testing.assert_close(found, fields[:, :, 3, 5])


def test_a_periodic_axis_wraps():
    grid = Grid((4, 8), periodic=(False, True))
    field = torch.arange(8, dtype=torch.float64).expand(1, 1, 4, 8)
    found = Points.on(grid, [[0.5, 15 / 16], [0.5, 1.0], [0.5, 0.0]])(field)
    assert found[0].tolist() == [3.5, 0.0, 0.0]


def test_a_line_has_points_too():
    field = torch.arange(5, dtype=torch.float64)[None, None, None]
    assert Points.on(Grid((1, 5)), [[0.3, 0.5]])(field).tolist() == [[2.0]]


def test_a_lattice_lies_inside():
    points = lattice(2, 3)
    assert points.shape == (6, 2)
    assert points[0].tolist() == [1 / 3, 1 / 4]
    assert points[-1].tolist() == [2 / 3, 3 / 4]


_WRONG_POINTS = (
    *([[0.5, 1.5]], [[0.5, float("nan")]], [0.5, 0.5], [], [[0.5, 0.5, 0.5]]),
    *([["a", "b"]], {"a": 1}, [[0.5], [0.5, 0.5]]),
)


@pytest.mark.parametrize("points", _WRONG_POINTS, ids=str)
def test_wrong_points(points):
    with pytest.raises(TwoscaleError, match="from 0 to 1"):
        Points.on(GRID, points)


# Inputs


def test_node_values_come_row_by_row():
    mapping = InputMap(Space(GRID, 2, parameters=1))
    assert mapping.sizes == [2 * GRID.nodes, 1]
    vector = torch.arange(2.0 * GRID.nodes)[None]
    batch = mapping([vector, torch.tensor([[7.0]])])
    assert batch.fields.shape == (1, 2, *GRID.shape)
    assert batch.fields[0, 1, 0, 1] == GRID.nodes + 1
    assert batch.parameters.tolist() == [[7.0]]


def test_parameters_alone_are_one_vector():
    mapping = InputMap(Space(Grid((1, 1)), 0, parameters=2))
    assert mapping.sizes == [2]
    batch = mapping([torch.tensor([[1.0, 2.0]])])
    assert batch.fields.shape == (1, 0, 1, 1)
    assert batch.parameters.tolist() == [[1.0, 2.0]]
    assert mapping.meaning == "2 parameters"


def test_coefficients_sum_modes():
    mapping = KarhunenLoeve(SPACE, Poisson(), 5)
    weights = torch.randn(2, 5, dtype=torch.float64)
    expected = torch.tensordot(weights, Poisson().level_modes(GRID, 5), 1)
    torch.testing.assert_close(mapping([weights]).fields[:, 0], expected)
    assert mapping.differentiable


def test_a_jump_has_no_derivatives_and_a_step_has():
    jump, smooth = (KarhunenLoeve(SPACE, Darcy(), 5, width=width) for width in (0.0, 0.2))
    assert (jump.differentiable, smooth.differentiable) == (False, True)
    weights = torch.randn(1, 5, dtype=torch.float64)
    assert set(jump([weights]).fields.flatten().tolist()) <= {4.0, 12.0}
    level = torch.tensordot(weights, smooth.modes, 1)
    expected = 4 + 8 / (1 + torch.exp(-level / (0.2 * smooth.deviation)))
    torch.testing.assert_close(smooth([weights]).fields[:, 0], expected)


@pytest.mark.parametrize(
    ("text", "problem", "words"),
    [
        ("kl", Poisson(), "inputs of a model are fields, kl:64"),
        ("kl:-3", Poisson(), "inputs of a model are"),
        ("kl:0", Poisson(), "has 1 to 107 modes"),
        ("kl:108", Poisson(), "has 1 to 107 modes"),
        ("kl:5,width=.", Darcy(), "inputs of a model are"),
        ("kl:5,width=1e999", Darcy(), "the width must be a number"),
        ("kl:5,width=0.1", Poisson(), "poisson has no threshold"),
        ("kl:5", None, "need a surrogate whose problem is known"),
        ("kl:5", Helmholtz(), "helmholtz are not made from a Gaussian random field"),
    ],
)
def test_wrong_inputs(text, problem, words):
    with pytest.raises(TwoscaleError, match=words):
        input_map(text, SPACE, problem)
