"""The equations: each owns its sampling, solution, residual, boundary, symmetries."""

from twoscale.problems.base import (
    PROBLEMS,
    Problem,
    describe_problem,
    get_problem,
    make_problem,
    problem_from,
)
from twoscale.problems.darcy import Darcy, DarcyFNO
from twoscale.problems.diffusion import DiffusionProblem
from twoscale.problems.helmholtz import Helmholtz
from twoscale.problems.navier_stokes import NavierStokes
from twoscale.problems.poisson import Poisson
from twoscale.problems.random_field import GaussianRandomField
from twoscale.problems.sine_series import CNOPoisson, CNOWave

__all__ = [
    "PROBLEMS",
    "CNOPoisson",
    "CNOWave",
    "Darcy",
    "DarcyFNO",
    "DiffusionProblem",
    "GaussianRandomField",
    "Helmholtz",
    "NavierStokes",
    "Poisson",
    "Problem",
    "describe_problem",
    "get_problem",
    "make_problem",
    "problem_from",
]
