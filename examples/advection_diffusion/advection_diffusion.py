"""A tracer that enters with the wind, spreads and leaves: an equation of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from scipy import sparse
from scipy.sparse.linalg import spsolve
from torch import Tensor
from torch.nn import functional

from twoscale import Grid, Problem
from twoscale.problems import GaussianRandomField
from twoscale.problems.parameters import positive


@dataclass(frozen=True)
class AdvectionDiffusion(Problem):
    """w du/dx - k Laplace(u) = f, with u = 0 at the left side and du/dn = 0 at the others.

    Inputs are the source f and the wind w, which blows to the right: (batch, 2, height, width).
    The output is the concentration u: (batch, 1, height, width).

    Parameters: `diffusivity` is k; `speed` is the median wind; `variation` is the distribution
    of f and of log(w / speed).
    """

    diffusivity: float = 0.1
    speed: float = 2.0
    variation: GaussianRandomField = field(default_factory=GaussianRandomField)

    name: ClassVar[str] = "advection-diffusion"
    boundary: ClassVar[str] = "u = 0 at the left side, du/dn = 0 at the others"
    solver: ClassVar[str] = "upwind and centred differences, sparse LU, float64"
    channels: ClassVar[tuple[int, int]] = (2, 1)
    fewest_nodes: ClassVar[int] = 2

    def __post_init__(self) -> None:
        for name in ("diffusivity", "speed"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    @property
    def distribution(self) -> dict[str, Any]:
        kind = "gaussian source, log-gaussian wind"
        return {"kind": kind, **asdict(self.variation), "speed": self.speed}

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        words = self.entropy(grid, seed)
        source, gusts = (
            self.variation.sample(grid, indices, entropy=(*words, channel), device=device)
            for channel in range(2)
        )
        return torch.stack([source, self.speed * gusts.exp()], dim=1)

    def solve(self, inputs: Tensor) -> Tensor:
        rows, columns, slopes = self._differences(inputs.double().cpu())
        # The left column is known, so that it has no equation and no unknown.
        columns, slopes = columns[:, 1:], slopes[:, 1:]
        here, there = sparse.eye_array(len(rows)), sparse.eye_array(len(columns))
        spread = sparse.kron(rows, there) + sparse.kron(here, columns)
        carry = sparse.kron(here, slopes)
        solutions = []
        for source, wind in inputs.double().cpu()[..., 1:]:  # (height, width - 1) each
            matrix = sparse.diags_array(wind.flatten().numpy()) @ carry - self.diffusivity * spread
            solution = spsolve(matrix.tocsc(), source.flatten().numpy())
            solutions.append(torch.from_numpy(solution).reshape(1, *source.shape))
        return functional.pad(torch.stack(solutions), (1, 0)).to(inputs.device)

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return the residual (batch, 1, height, width - 1) at all nodes right of the first."""
        rows, columns, slopes = self._differences(outputs)
        source, wind = inputs[:, :1, :, 1:], inputs[:, 1:, :, 1:]
        spread = rows @ outputs[..., 1:] + outputs @ columns.T
        return wind * (outputs @ slopes.T) - self.diffusivity * spread - source

    def _differences(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the matrices of d2/dy2, d2/dx2 and d/dx (upwind), without x's first node."""
        (height, width), (dy, dx) = like.shape[-2:], self.grid(*like.shape[-2:]).spacing
        rows = mirrored_second_difference(height) / dy**2  # (height, height)
        columns = mirrored_second_difference(width)[1:] / dx**2  # (width - 1, width)
        slopes = torch.eye(width, dtype=torch.float64).diff(dim=0) / dx  # (width - 1, width)
        return rows.to(like), columns.to(like), slopes.to(like)


def mirrored_second_difference(nodes: int) -> Tensor:
    """Return the matrix of u[i-1] - 2 u[i] + u[i+1], with u mirrored at both ends: du/dn = 0."""
    matrix = torch.diag(torch.full((nodes,), -2.0, dtype=torch.float64))
    matrix += torch.diag(torch.ones(nodes - 1), 1) + torch.diag(torch.ones(nodes - 1), -1)
    matrix[0, 1] = matrix[-1, -2] = 2.0
    return matrix
