"""Stands in for what `twoscale.problems` offers, where it is not there yet."""

from twoscale import problems
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.problems import Problem


def _describe(problem):
    return {"name": problem.name, "parameters": {}}


def _from(described):
    return problems.PROBLEMS.get(described["name"])


def _make(name, settings):
    if settings:
        raise TwoscaleError(f"{name} has no parameter '{next(iter(settings))}'")
    return problems.get_problem(name)


def _grid(problem, height, width):
    grid = Grid(height, width, problem.periodic)
    problem.check_grid(grid)
    return grid


def _check_grid(problem, grid):
    if grid.periodic != problem.periodic:
        raise TwoscaleError(f"{problem.name} needs a grid with periodic={problem.periodic}")
    if min(grid.shape) < 3:
        raise TwoscaleError(f"{problem.name} needs at least 3 nodes per side")


if not hasattr(problems, "describe_problem"):
    problems.describe_problem = _describe
    problems.problem_from = _from
    problems.make_problem = _make
    Problem.grid = _grid
    Problem.check_grid = _check_grid
    Problem.channels = (1, 1)
    Problem.periodic = (False, False)
    Problem.boundary = "u = 0 on the boundary"
