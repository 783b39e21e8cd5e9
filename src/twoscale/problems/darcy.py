"""Steady Darcy flow through a random two-phase medium, also solved on a fine grid and thinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.math.krylov import CGResult
from twoscale.problems.diffusion import DiffusionProblem, in_solver_parts, with_boundary
from twoscale.problems.parameters import check_positive
from twoscale.problems.random_field import GaussianRandomField

_FINE_VALUES = 2**22  # nodes of fine fields held together, on a GPU more
_FINE_VALUES_CUDA = 2**27


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


@dataclass(frozen=True)
class DarcyFNO(Darcy):
    """-div(a grad u) = 1, u = 0 on the boundary, solved on a fine grid and then thinned.

    a is 12 where a Gaussian random field N(0, (-Laplace + 9)^-2) is not negative, and 3 elsewhere.
    This is the benchmark of Li et al. (2021), the authors of FNO. Fields on a coarser grid are
    every k-th node of a and u on the fine one. So sample i is the same medium on all grids. A
    thinned u solves no equation of the thinned a: it has no residual, and `solve` refuses thinned
    inputs.

    Parameters
    ----------
    medium, high, low
        As for `Darcy`; high is 12 and low is 3 by default.
    nodes
        Nodes per side of the fine grid, 421 by default.

    Examples
    --------
    >>> problem = DarcyFNO(nodes=41)
    >>> medium, pressure = problem.pairs(Grid((11, 11)), [0, 1], seed=0)
    >>> whole, _ = problem.pairs(Grid((41, 41)), [0, 1], seed=0)
    >>> pressure.shape, torch.equal(medium, whole[:, ::4, ::4])
    (torch.Size([2, 11, 11]), True)
    """

    low: float = 3.0
    nodes: int = 421

    name: ClassVar[str] = "darcy-fno"
    number: ClassVar[int] = 5
    resolution: ClassVar[int] = 85

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nodes < self.fewest_nodes:
            raise TwoscaleError(f"nodes must be at least {self.fewest_nodes}, got {self.nodes}")

    @property
    def fine_grid(self) -> Grid:
        return Grid.square(self.nodes)

    def check_grid(self, grid: Grid) -> None:
        super().check_grid(grid)
        intervals = self.nodes - 1
        if any(intervals % (side - 1) for side in grid.shape):
            fitting = [intervals // k + 1 for k in range(1, intervals) if intervals % k == 0]
            raise TwoscaleError(
                f"{self.name} keeps every k-th of {self.nodes} nodes per side, which leaves "
                f"{', '.join(map(str, fitting))}; got {grid}"
            )

    def solves(self, grid: Grid) -> bool:
        return grid == self.fine_grid

    def has_residual(self, grid: Grid) -> bool:
        return grid == self.fine_grid

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        parts = [
            thinned(self._fine_sample(part, seed, device), grid)
            for part in self._parts(indices, device)
        ]
        return torch.cat(parts)

    def level_modes(self, grid: Grid, count: int) -> Tensor:
        self.check_grid(grid)
        return thinned(super().level_modes(self.fine_grid, count), grid)

    def pairs(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor]:
        self.check_grid(grid)
        inputs, outputs = [], []
        for part in self._parts(indices, device):
            fine = self._fine_sample(part, seed, device)
            inputs.append(thinned(fine, grid))
            outputs.append(thinned(self.solve(fine), grid))
        return torch.cat(inputs), torch.cat(outputs)

    def solve(self, inputs: Tensor) -> Tensor:
        grid = Grid(inputs.shape[-2:])
        self.check_grid(grid)
        if not self.solves(grid):
            raise TwoscaleError(
                f"{self.name} is solved on {self.fine_grid} nodes, got a medium thinned to {grid}: "
                "pairs() gives thinned media with their solutions"
            )
        return super().solve(inputs)

    def _fine_sample(self, indices: Sequence[int], seed: int, device: torch.device | str) -> Tensor:
        return super().sample(self.fine_grid, indices, seed=seed, device=device)

    def _parts(self, indices: Sequence[int], device: torch.device | str) -> list[Sequence[int]]:
        cuda = torch.device(device).type == "cuda"
        length = max(1, (_FINE_VALUES_CUDA if cuda else _FINE_VALUES) // self.fine_grid.nodes)
        return [indices[part] for part in slices(len(indices), length)]


def rounding_residual(coefficient: Tensor, interior: Tensor) -> Tensor:
    """Return a bound (batch,) on the relative residual that rounding u to float64 alone causes.

    Rounding changes u by less than eps |u|, and A u at a node by less than eps |u| times the row
    sum of |A|, which is about 4 a (1 / h_y^2 + 1 / h_x^2). The right side is 1 at every node.
    """
    inverse_squares = sum(spacing**-2 for spacing in Grid(coefficient.shape[-2:]).spacing)
    rounding = 4 * torch.finfo(torch.float64).eps * inverse_squares
    change = rounding * coefficient[..., 1:-1, 1:-1] * interior
    return change.flatten(1).square().mean(1).sqrt()


def thinned(fields: Tensor, grid: Grid) -> Tensor:
    """Return every k-th node of fields (..., height, width), so that those of `grid` are left."""
    rows, columns = (
        (fine - 1) // (coarse - 1)
        for fine, coarse in zip(fields.shape[-2:], grid.shape, strict=True)
    )
    return fields[..., ::rows, ::columns].contiguous()
