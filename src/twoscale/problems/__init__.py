"""The equations: each owns its sampling, solution, residual, boundary, symmetries."""

from twoscale.problems.base import Problem
from twoscale.problems.cno_poisson import CNOPoisson
from twoscale.problems.cno_wave import CNOWave
from twoscale.problems.darcy import Darcy
from twoscale.problems.darcy_fno import DarcyFNO
from twoscale.problems.diffusion import DiffusionProblem
from twoscale.problems.helmholtz import Helmholtz
from twoscale.problems.navier_stokes import NavierStokes
from twoscale.problems.poisson import Poisson
from twoscale.problems.random_field import GaussianRandomField
from twoscale.problems.registry import (
    PROBLEMS,
    describe_problem,
    get_problem,
    make_problem,
    problem_from,
    register,
)

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
    "register",
]
