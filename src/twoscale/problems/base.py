"""What a problem is, and the stencil all of ours share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.fields.symmetries import Group, symmetry_group


class Problem(ABC):
    """An equation on a grid: input field in, solution field out.

    Everything that states the equation, its sign included, is here: `sample`, `solve`,
    `residual`. Fields are (batch, height, width).
    """

    name: ClassVar[str]
    number: ClassVar[int]  # part of the random seed, so that problems never share samples
    boundary_condition: ClassVar[str] = "u = 0 on the boundary"
    solver: ClassVar[str]
    symmetric_under: ClassVar[str] = "none"  # the name of a group of symmetries
    fixed_operator: ClassVar[bool]  # the operator applied to u does not depend on the input

    @property
    @abstractmethod
    def distribution(self) -> dict[str, Any]:
        """Return the distribution of the input field, for the record."""

    @abstractmethod
    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        """Return the input fields of the samples `indices`, float64.

        Sample i depends on (problem, grid, seed, i) only.
        """

    @abstractmethod
    def solve(self, inputs: Tensor) -> Tensor:
        """Return the solutions of `inputs`, in float64."""

    @abstractmethod
    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return the discrete residual (batch, height - 2, width - 2) at interior nodes."""

    @abstractmethod
    def coefficient(self, inputs: Tensor) -> Tensor:
        """Return the diffusion coefficient (batch, height, width)."""

    def coefficient_bounds(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the least and largest diffusion coefficient of each sample."""
        coefficient = self.coefficient(inputs)
        return coefficient.amin((1, 2)), coefficient.amax((1, 2))

    def symmetries(self, grid: Grid) -> Group:
        """Return the maps of the grid onto itself that take solutions to solutions."""
        return symmetry_group(self.symmetric_under, grid.shape)

    def entropy(self, grid: Grid, seed: int) -> tuple[int, ...]:
        """Return the words that, with the sample index, seed one sample."""
        return (seed, self.number, grid.height, grid.width)


def diffusion(fields: Tensor, coefficient: Tensor | None = None) -> Tensor:
    """Return div_h(a grad_h u) at the interior nodes; a = 1 without `coefficient`.

    Centred differences of the fluxes through cell faces, a taken there as the arithmetic mean of
    the two nodes. Both arguments (batch, height, width), result (batch, height - 2, width - 2).
    """
    return diffusion_through(fields, None if coefficient is None else face_means(coefficient))


def face_means(coefficient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the coefficient at the faces that interior nodes have across rows and columns."""
    rows, columns = coefficient[:, :, 1:-1], coefficient[:, 1:-1]
    return 0.5 * (rows[:, 1:] + rows[:, :-1]), 0.5 * (columns[..., 1:] + columns[..., :-1])


def diffusion_through(fields: Tensor, faces: tuple[Tensor, Tensor] | None) -> Tensor:
    """Return div_h(a grad_h u) with a given at faces: what repeated products need."""
    height, width = Grid(*fields.shape[1:]).spacing
    down, right = fields[:, :, 1:-1].diff(dim=1), fields[:, 1:-1].diff(dim=2)
    if faces is not None:
        down, right = down * faces[0], right * faces[1]
    return down.diff(dim=1) / height**2 + right.diff(dim=2) / width**2


@lru_cache(maxsize=8)
def laplacian_eigenvalues(grid: Grid, device: torch.device) -> Tensor:
    """Return the eigenvalues (height - 2, width - 2) of the five-point Laplacian, all negative."""
    rows, columns = (
        -4.0
        / spacing**2
        * torch.sin(
            0.5 * torch.pi * torch.arange(1, size - 1, dtype=torch.float64) / (size - 1)
        ).square()
        for size, spacing in zip(grid.shape, grid.spacing, strict=True)
    )
    return (rows[:, None] + columns).to(device)


PROBLEMS: dict[str, Problem] = {}


def register(problem: Problem) -> None:
    """Make a problem known by its name."""
    PROBLEMS[problem.name] = problem


def get_problem(name: str) -> Problem:
    """Return the problem of that name."""
    if name not in PROBLEMS:
        raise TwoscaleError(f"no problem is called '{name}': known are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]
