"""Poisson's equation with a random forcing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.fields.grid import Grid
from twoscale.linalg.transforms import sine_transform
from twoscale.problems.base import Problem, diffusion, laplacian_eigenvalues, register
from twoscale.problems.random_field import GaussianRandomField


@dataclass(frozen=True)
class Poisson(Problem):
    """Laplace(u) = f with u = 0 on the boundary; f is a Gaussian random field."""

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
        entropy = self.entropy(grid, seed)
        return self.forcing.sample(grid, indices, entropy=entropy, device=torch.device(device))

    def solve(self, inputs: Tensor) -> Tensor:
        return functional.pad(solve_laplace(inputs[:, 1:-1, 1:-1].double()), (1, 1, 1, 1))

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        return diffusion(outputs) - inputs[:, 1:-1, 1:-1]

    def coefficient(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs)


def solve_laplace(interior: Tensor) -> Tensor:
    """Return the interior solution of Laplace_h(u) = f for interior values f, u = 0 outside."""
    grid = Grid(interior.shape[1] + 2, interior.shape[2] + 2)
    eigenvalues = laplacian_eigenvalues(grid, interior.device)
    return sine_transform(sine_transform(interior) / eigenvalues.to(interior.dtype))


register(Poisson())
