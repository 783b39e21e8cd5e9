"""Random sine series, and what is done with the sine coefficients of fields that are 0 outside."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.math.transforms import sine_matrix, sine_transform
from twoscale.problems.base import Problem
from twoscale.problems.parameters import check_positive
from twoscale.problems.random_field import uniforms


@dataclass(frozen=True)
class SineSeriesProblem(Problem):
    """A linear equation with constant coefficients and u = 0 on the boundary.

    The input is (pi / K^2) sum of a_ij (i^2 + j^2)^power sin(pi i x) sin(pi j y) over i and j from
    1 to K = `waves`, with a_ij uniform between -1 and 1. The output has the same sines, each times
    a factor of i^2 + j^2. Between nodes fields are the sine series through the nodes, so that no
    error of discretisation is made.
    """

    waves: int = 16

    boundary: ClassVar[str] = "u = 0 on the boundary"
    symmetric_under: ClassVar[str] = "square"
    fewest_nodes: ClassVar[int] = 3
    power: ClassVar[float]

    def __post_init__(self) -> None:
        check_positive(self)

    @property
    def distribution(self) -> dict[str, Any]:
        kind = "sine series with uniform coefficients"
        return {"kind": kind, "waves": self.waves, "power": self.power}

    def check_grid(self, grid: Grid) -> None:
        super().check_grid(grid)
        if min(grid.shape) < self.waves + 2:
            raise TwoscaleError(
                f"{self.name} with waves={self.waves} needs at least {self.waves + 2} nodes per "
                f"side, got {grid}"
            )

    @abstractmethod
    def factors(self, squares: Tensor) -> Tensor:
        """Return what the equation multiplies each sine with, from its i^2 + j^2."""

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        shape = (self.waves, self.waves)
        draws = uniforms(shape, indices, entropy=self.entropy(grid, seed))
        return self.series(torch.from_numpy(draws).to(device), grid)

    def series(self, coefficients: Tensor, grid: Grid) -> Tensor:
        """Return the inputs (batch, height, width) of the coefficients a (batch, K, K)."""
        scale = math.pi / self.waves**2 * squared_waves(coefficients) ** self.power
        rows, columns = (_sines(side, self.waves, coefficients.device) for side in grid.shape)
        return functional.pad(rows @ (coefficients * scale) @ columns.T, (1, 1, 1, 1))

    def solve(self, inputs: Tensor) -> Tensor:
        grid = self.grid(*inputs.shape[-2:])
        interior = (
            inputs[..., 1:-1, 1:-1].double().reshape(-1, grid.shape[0] - 2, grid.shape[1] - 2)
        )
        modes = sine_transform(interior) * self.factors(squared_waves(interior))
        solution = functional.pad(sine_transform(modes), (1, 1, 1, 1))
        return solution.reshape(inputs.shape)


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


def squared_waves(modes: Tensor) -> Tensor:
    """Return i^2 + j^2 (rows, columns), i and j from 1, for coefficients (..., rows, columns)."""
    rows, columns = (
        torch.arange(1, size + 1, dtype=torch.float64, device=modes.device).square()
        for size in modes.shape[-2:]
    )
    return rows[:, None] + columns


def _sines(nodes: int, waves: int, device: torch.device) -> Tensor:
    """Return sin(pi k x) (nodes - 2, waves) at the interior nodes, k from 1."""
    inner = torch.arange(1, nodes - 1, dtype=torch.float64)
    numbers = torch.arange(1, waves + 1, dtype=torch.float64)
    return torch.sin(math.pi / (nodes - 1) * torch.outer(inner, numbers)).to(device)


@lru_cache(maxsize=8)
def second_derivative(size: int, device: torch.device) -> Tensor:
    """Return u'' (size, size) at interior nodes of the unit interval, of the sine series."""
    sines = sine_matrix(size, torch.device("cpu"))
    numbers = torch.arange(1, size + 1, dtype=torch.float64)
    return (-(sines * (math.pi * numbers).square()) @ sines).to(device)
