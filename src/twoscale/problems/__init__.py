"""The equations: each owns its sampling, solution, residual, symmetries and bounds."""

from twoscale.problems.base import PROBLEMS, Problem, get_problem, register
from twoscale.problems.darcy import Darcy
from twoscale.problems.poisson import Poisson

__all__ = [
    "PROBLEMS",
    "Darcy",
    "Poisson",
    "Problem",
    "get_problem",
    "register",
]
