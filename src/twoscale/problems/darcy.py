"""Steady Darcy flow through a random two-phase medium."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.math.krylov import CGResult
from twoscale.problems.diffusion import DiffusionProblem, in_solver_parts, with_boundary
from twoscale.problems.parameters import check_positive
from twoscale.problems.random_field import GaussianRandomField
from twoscale.problems.registry import register


@register
@dataclass(frozen=True)
class Darcy(DiffusionProblem):
    """-div(a grad u) = 1 with u = 0 on the boundary; a takes two positive values.

    Parameters
    ----------
    medium
        Distribution of the random field that decides which value a has, by default
        `GaussianRandomField()`.
    high, low
        Value of a where that field is not negative, 12 by default, and elsewhere, 4 by default.

    Examples
    --------
    >>> problem = Darcy(high=10.0, low=1.0)
    >>> medium = problem.sample(Grid((9, 9)), [0, 1], seed=0)
    >>> sorted(set(medium.flatten().tolist()))
    [1.0, 10.0]
    """

    medium: GaussianRandomField = field(default_factory=GaussianRandomField)
    high: float = 12.0
    low: float = 4.0

    name: ClassVar[str] = "darcy"
    number: ClassVar[int] = 2
    symmetric_under: ClassVar[str] = "square"
    thresholded: ClassVar[bool] = True
    solver: ClassVar[str] = (
        "arithmetic face means, conjugate gradients preconditioned by DST-I, "
        "relative residual 1e-10, float64"
    )

    def __post_init__(self) -> None:
        check_positive(self)

    @property
    def distribution(self) -> dict[str, Any]:
        kind = "thresholded gaussian random field"
        return {"kind": kind, **asdict(self.medium), "high": self.high, "low": self.low}

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        entropy = self.entropy(grid, seed)
        return self.inputs_of(self.medium.sample(grid, indices, entropy=entropy, device=device))

    def level_modes(self, grid: Grid, count: int) -> Tensor:
        return self.medium.modes(grid, count)

    def inputs_of(self, level: Tensor, *, width: float = 0.0) -> Tensor:
        """Return a = high where the field is not negative, and low elsewhere.

        With a `width` it is low + (high - low) / (1 + exp(-level / width)): smooth, and close to
        the two values where |level| is above 4 widths.
        """
        if not width:
            return torch.where(level >= 0, self.high, self.low).to(level.dtype)
        return self.low + (self.high - self.low) * torch.sigmoid(level / width)

    def solve(self, inputs: Tensor) -> Tensor:
        self.check_grid(Grid(inputs.shape[-2:]))
        if not bool(((inputs > 0) & inputs.isfinite()).all()):
            raise TwoscaleError("Darcy needs a coefficient that is positive everywhere, and finite")
        return with_boundary(
            in_solver_parts(lambda part: self.solve_interior(part).solution, inputs)
        )

    def solve_interior(self, inputs: Tensor, *, tolerance: float = 1e-10) -> CGResult:
        """Return the interior solutions of a batch with their iteration counts.

        Raises where a residual is above both `tolerance` and what rounding leaves.
        """
        coefficient = inputs.double()
        system = self.system(coefficient)
        result = system.solve(tolerance=tolerance)
        allowed = rounding_residual(coefficient, result.solution).clamp_min(tolerance)
        if not bool((result.residual <= allowed).all()):
            worst = float(result.residual.max())
            raise TwoscaleError(
                f"the Darcy solver stopped at relative residual {worst:.1e} instead of "
                f"{tolerance:.0e}: the coefficient's contrast is too high"
            )
        return result

    def coefficient(self, inputs: Tensor) -> Tensor:
        return inputs

    def right_side(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs[..., 1:-1, 1:-1])


def rounding_residual(coefficient: Tensor, interior: Tensor) -> Tensor:
    """Return a bound (batch,) on the relative residual that rounding u to float64 alone causes.

    Rounding changes u by less than eps |u|, and A u at a node by less than eps |u| times the row
    sum of |A|, which is about 4 a (1 / h_y^2 + 1 / h_x^2). The right side is 1 at every node.
    """
    inverse_squares = sum(spacing**-2 for spacing in Grid(coefficient.shape[-2:]).spacing)
    rounding = 4 * torch.finfo(torch.float64).eps * inverse_squares
    change = rounding * coefficient[..., 1:-1, 1:-1] * interior
    return change.flatten(1).square().mean(1).sqrt()
