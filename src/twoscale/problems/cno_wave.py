"""The wave equation: from a membrane at rest to its shape some time later."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from twoscale.problems.registry import register
from twoscale.problems.sine_series import SineSeriesProblem


@register
@dataclass(frozen=True)
class CNOWave(SineSeriesProblem):
    """u_tt = c^2 Laplace(u) with u = 0 on the boundary and u_t(0) = 0; from u(0) to u(T).

    u(0) = (pi / K^2) sum of a_ij (i^2 + j^2)^-1 sin(pi i x) sin(pi j y) over i and j from 1 to K,
    with a_ij uniform between -1 and 1. u(T) is known: each sine times cos(c pi T sqrt(i^2 + j^2)).
    This is a benchmark of Raonic et al. (2023), the authors of CNO. K = 24 is the distribution for
    training and testing, K = 32 the one outside of it.

    Parameters
    ----------
    waves
        K, 24 by default; at most the number of nodes per side minus 2.
    speed
        c, 0.1 by default.
    time
        T, 5 by default.

    Examples
    --------
    >>> problem = CNOWave(waves=4)
    >>> start = problem.sample(problem.grid(9, 9), [0, 1], seed=0)
    >>> problem.solve(start).shape
    torch.Size([2, 9, 9])
    """

    waves: int = 24
    speed: float = 0.1
    time: float = 5.0

    name: ClassVar[str] = "cno-wave"
    number: ClassVar[int] = 7
    power: ClassVar[float] = -1.0
    solver: ClassVar[str] = "exact for the sine series through the nodes, by DST-I, float64"

    def factors(self, squares: Tensor) -> Tensor:
        return torch.cos(self.speed * math.pi * self.time * squares.sqrt())
