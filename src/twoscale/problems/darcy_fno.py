"""Darcy flow solved on a fine grid, of which every k-th node is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.problems.darcy import Darcy
from twoscale.problems.registry import register

_FINE_VALUES = 2**22  # nodes of fine fields held together, on a GPU more
_FINE_VALUES_CUDA = 2**27


@register
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


def thinned(fields: Tensor, grid: Grid) -> Tensor:
    """Return every k-th node of fields (..., height, width), so that those of `grid` are left."""
    rows, columns = (
        (fine - 1) // (coarse - 1)
        for fine, coarse in zip(fields.shape[-2:], grid.shape, strict=True)
    )
    return fields[..., ::rows, ::columns].contiguous()
