"""Random sine series, and what is done with the sine coefficients of fields that are 0 outside."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.math.transforms import sine_transform
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
