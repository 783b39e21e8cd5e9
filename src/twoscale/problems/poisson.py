"""Poisson's equation with a random forcing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.problems.diffusion import DiffusionProblem, solve_laplace, with_boundary
from twoscale.problems.random_field import GaussianRandomField


@dataclass(frozen=True)
class Poisson(DiffusionProblem):
    """Laplace(u) = f with u = 0 on the boundary.

    Parameters
    ----------
    forcing
        Distribution of f, by default `GaussianRandomField()`.

    Examples
    --------
    >>> problem = Poisson()
    >>> forcing = problem.sample(Grid((9, 9)), [0, 1], seed=0)
    >>> bool(problem.residual(forcing, problem.solve(forcing)).abs().max() < 1e-9)
    True
    """

    forcing: GaussianRandomField = field(default_factory=GaussianRandomField)

    name: ClassVar[str] = "poisson"
    number: ClassVar[int] = 1
    symmetric_under: ClassVar[str] = "square"
    fixed_operator: ClassVar[bool] = True
    solver: ClassVar[str] = "five-point Laplacian, exact by DST-I, float64"

    @property
    def distribution(self) -> dict[str, Any]:
        return {"kind": "gaussian random field", **asdict(self.forcing)}

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        entropy = self.entropy(grid, seed)
        return self.forcing.sample(grid, indices, entropy=entropy, device=device)

    def level_modes(self, grid: Grid, count: int) -> Tensor:
        return self.forcing.modes(grid, count)

    def inputs_of(self, level: Tensor, *, width: float = 0.0) -> Tensor:
        return level

    def solve(self, inputs: Tensor) -> Tensor:
        self.check_grid(Grid(inputs.shape[-2:]))
        return with_boundary(solve_laplace(inputs[..., 1:-1, 1:-1].double()))

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return Laplace_h(u) - f at the interior nodes: the sign in which the equation is told."""
        return -super().residual(inputs, outputs)

    def coefficient(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs)

    def right_side(self, inputs: Tensor) -> Tensor:
        return -inputs[..., 1:-1, 1:-1]

    def faces(self, inputs: Tensor) -> None:
        return None
