"""Poisson's equation with a forcing of many sines, solved without an error of discretisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from twoscale.math.transforms import sine_matrix
from twoscale.problems.registry import register
from twoscale.problems.sine_series import SineSeriesProblem


@register
@dataclass(frozen=True)
class CNOPoisson(SineSeriesProblem):
    """-Laplace(u) = f with u = 0 on the boundary; from f to u.

    f = (pi / K^2) sum of a_ij sqrt(i^2 + j^2) sin(pi i x) sin(pi j y) over i and j from 1 to K,
    with a_ij uniform between -1 and 1. u is known: (1 / (pi K^2)) sum of a_ij / sqrt(i^2 + j^2)
    times the same sines. This is a benchmark of Raonic et al. (2023), the authors of CNO. K = 16 is
    the distribution for training and testing, K = 20 the one outside of it.

    Parameters
    ----------
    waves
        K, 16 by default; at most the number of nodes per side minus 2.

    Examples
    --------
    >>> problem = CNOPoisson(waves=4)
    >>> forcing = problem.sample(problem.grid(9, 9), [0, 1], seed=0)
    >>> bool(problem.residual(forcing, problem.solve(forcing)).abs().max() < 1e-12)
    True
    """

    waves: int = 16

    name: ClassVar[str] = "cno-poisson"
    number: ClassVar[int] = 6
    power: ClassVar[float] = 0.5
    fixed_operator: ClassVar[bool] = True
    solver: ClassVar[str] = "exact for the sine series through the nodes, by DST-I, float64"

    def factors(self, squares: Tensor) -> Tensor:
        return 1 / (math.pi**2 * squares)

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return -Laplace(u) - f at the interior nodes, for the sine series through u there."""
        inside = (..., slice(1, -1), slice(1, -1))
        interior = outputs[inside]
        rows, columns = (
            second_derivative(size, outputs.device).to(outputs.dtype)
            for size in interior.shape[-2:]
        )
        return -(rows @ interior) - interior @ columns - inputs[inside]


@lru_cache(maxsize=8)
def second_derivative(size: int, device: torch.device) -> Tensor:
    """Return u'' (size, size) at interior nodes of the unit interval, of the sine series."""
    sines = sine_matrix(size, torch.device("cpu"))
    numbers = torch.arange(1, size + 1, dtype=torch.float64)
    return (-(sines * (math.pi * numbers).square()) @ sines).to(device)
