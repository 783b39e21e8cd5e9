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
from twoscale.problems.base import DiffusionProblem, diffusion, laplacian_eigenvalues
from twoscale.problems.random_field import GaussianRandomField
from twoscale.problems.registry import register


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
    >>> forcing = problem.sample(Grid(9, 9), [0, 1], seed=0)
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

    def solve(self, inputs: Tensor) -> Tensor:
        self.check_grid(Grid(*inputs.shape[-2:]))
        return functional.pad(solve_laplace(inputs[..., 1:-1, 1:-1].double()), (1, 1, 1, 1))

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        return diffusion(outputs) - inputs[..., 1:-1, 1:-1]

    def coefficient(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs)


def solve_laplace(interior: Tensor) -> Tensor:
    """Return the interior solution of Laplace_h(u) = f for interior values f, u = 0 outside.

    Argument and result (..., height - 2, width - 2).
    """
    height, width = interior.shape[-2:]
    eigenvalues = laplacian_eigenvalues(Grid(height + 2, width + 2), interior.device)
    fields = interior.reshape(-1, height, width)
    solution = sine_transform(sine_transform(fields) / eigenvalues.to(fields.dtype))
    return solution.reshape(interior.shape)


register(Poisson())
