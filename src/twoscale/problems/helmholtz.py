"""Waves of one frequency in a random medium, driven from one side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.problems.base import Problem, in_parts
from twoscale.problems.finite_elements import (
    Stencil,
    cosines,
    gauss_values,
    reaction_stencil,
    side_load,
)
from twoscale.problems.parameters import check_positive
from twoscale.problems.random_field import standard_normals
from twoscale.problems.registry import register

_SHIFT = 9.0  # of the eigenvalues of the medium's covariance
_DRIVEN = 0.15  # half the width of the driven part of the side y = 1
_SOLVE_VALUES = 2**24  # of the factors held together while systems are solved
_SOLVE_VALUES_CUDA = 2**30


@register
@dataclass(frozen=True)
class Helmholtz(Problem):
    """-Laplace(u) - (omega / c)^2 u = 0 on the unit square; from the wave speed c to u.

    du/dn is 0 on all sides but y = 1. There it is 1 at the nodes with |x - 0.5| < 0.15, 0 at the
    others, and linear in between. Rows are x, columns are y. The wave speed is
    c = speed + tanh(sum of theta_ij phi_ij / (pi^2 (i^2 + j^2) + 9)) over the pairs (i, j) of least
    i^2 + j^2, (0, 0) left out, with standard normal theta. phi is 2 cos(pi i x) cos(pi j y), and
    sqrt(2) times the cosine where i or j is 0. This is the benchmark of de Hoop, Huang, Qian and
    Stuart (2022).

    Parameters
    ----------
    frequency
        omega, 1000 by default.
    speed
        Mean wave speed, above 1; 20 by default.
    modes
        Number of pairs (i, j), 100 by default.

    Examples
    --------
    >>> problem = Helmholtz(frequency=100.0)
    >>> speed = problem.sample(problem.grid(16, 16), [0, 1], seed=0)
    >>> bool(problem.residual(speed, problem.solve(speed)).abs().max() < 1e-8)
    True
    """

    frequency: float = 1000.0
    speed: float = 20.0
    modes: int = 100

    name: ClassVar[str] = "helmholtz"
    number: ClassVar[int] = 4
    boundary: ClassVar[str] = "du/dn = 1 on the middle of the side y = 1 (last column), else 0"
    fewest_nodes: ClassVar[int] = 3
    resolution: ClassVar[int] = 101
    symmetric_under: ClassVar[str] = "mirror-rows"
    solver: ClassVar[str] = (
        "bilinear finite elements, 3 x 3 Gauss points, c between nodes by its cosine series, "
        "block elimination, float64"
    )

    def __post_init__(self) -> None:
        check_positive(self)
        if self.speed <= 1:
            raise TwoscaleError(f"speed must be above 1, got {self.speed}")

    @property
    def distribution(self) -> dict[str, Any]:
        kind = "tanh of a sum of cosines with normal coefficients"
        return {"kind": kind, "speed": self.speed, "modes": self.modes, "shift": _SHIFT}

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        normals = standard_normals((self.modes,), indices, entropy=self.entropy(grid, seed))
        return self.wave_speed(torch.from_numpy(normals).to(device), grid)

    def wave_speed(self, coefficients: Tensor, grid: Grid) -> Tensor:
        """Return c (batch, height, width) of the coefficients theta (batch, modes)."""
        pairs = torch.tensor(wave_numbers(self.modes))
        first, second = pairs.unbind(1)
        size = torch.where(pairs.amin(1) > 0, 2.0, math.sqrt(2.0)).double()
        scale = size / (math.pi**2 * pairs.square().sum(1) + _SHIFT)
        order = int(pairs.max()) + 1
        spectrum = coefficients.new_zeros(len(coefficients), order, order)
        spectrum[:, first, second] = coefficients * scale.to(coefficients.device)
        rows, columns = (
            cosines(torch.linspace(0, 1, size, dtype=torch.float64), order).to(spectrum.device)
            for size in grid.shape
        )
        return self.speed + torch.tanh(rows @ spectrum @ columns.T)

    def solve(self, inputs: Tensor) -> Tensor:
        grid = self.grid(*inputs.shape[-2:])
        if not bool(((inputs > 0) & inputs.isfinite()).all()):
            raise TwoscaleError(
                "Helmholtz needs a wave speed that is positive everywhere, and finite"
            )
        load = right_side(grid, inputs.device)
        return in_parts(
            lambda part: self._stencil(part).solve(load.expand_as(part)),
            inputs.double().reshape(-1, *grid.shape),
            values=grid.shape[0] ** 2 * grid.shape[1],
            cpu=_SOLVE_VALUES,
            cuda=_SOLVE_VALUES_CUDA,
        ).reshape(inputs.shape)

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return (A u - b) / (area of a cell) at all nodes."""
        grid = Grid(inputs.shape[-2:])
        load = right_side(grid, inputs.device).to(inputs.dtype)
        return (self._stencil(inputs).apply(outputs) - load) / math.prod(grid.spacing)

    def _stencil(self, speeds: Tensor) -> Stencil:
        """Return the matrices A of wave speeds (..., height, width)."""
        rows, columns = (
            gauss_values(size, speeds.device).to(speeds.dtype) for size in speeds.shape[-2:]
        )
        reaction = (self.frequency / (rows @ speeds @ columns.T)).square()
        return reaction_stencil(reaction, Grid(speeds.shape[-2:]))


@lru_cache(maxsize=8)
def right_side(grid: Grid, device: torch.device) -> Tensor:
    """Return the right side b (height, width), float64."""
    x = torch.linspace(0, 1, grid.shape[0], dtype=torch.float64)
    driven = ((x - 0.5).abs() < _DRIVEN - 1e-9).double()  # x = 0.35 is not below 0.15
    load = torch.zeros(grid.shape, dtype=torch.float64)
    load[:, -1] = side_load(driven)
    return load.to(device)


def wave_numbers(modes: int) -> list[tuple[int, int]]:
    """Return the pairs (i, j) of least i^2 + j^2 but (0, 0); ties in the order of i, then of j."""
    numbers = range(math.isqrt(2 * modes) + 2)  # the quarter of a disc that holds them is smaller
    near = [(i, j) for i in numbers for j in numbers if (i, j) != (0, 0)]
    return sorted(near, key=lambda pair: (pair[0] ** 2 + pair[1] ** 2, pair))[:modes]
