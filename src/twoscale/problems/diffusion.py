"""Equations -div(a grad u) = f with u = 0 on the boundary: their stencil and linear system."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.grid import Grid
from twoscale.math.krylov import CGResult, conjugate_gradients
from twoscale.math.transforms import sine_transform
from twoscale.problems.base import Problem, in_parts

_SOLVE_VALUES = 2**18  # nodes solved for together: few enough to stay in a CPU's cache
_SOLVE_VALUES_CUDA = 2**26

Faces = tuple[Tensor, Tensor]
"""Values at the cell faces of interior nodes, across rows (..., height - 1, width - 2) and across
columns (..., height - 2, width - 1)."""


class DiffusionProblem(Problem):
    """The equation -div(a grad u) = f with u = 0 on the boundary; a and f follow from the input."""

    boundary: ClassVar[str] = "u = 0 on the boundary"
    fewest_nodes: ClassVar[int] = 3

    @abstractmethod
    def coefficient(self, inputs: Tensor) -> Tensor:
        """Return the diffusion coefficient a, of the shape of `inputs`."""

    @abstractmethod
    def right_side(self, inputs: Tensor) -> Tensor:
        """Return f at the interior nodes, (..., height - 2, width - 2)."""

    def faces(self, inputs: Tensor) -> Faces | None:
        """Return the coefficient at cell faces; None stands for 1 everywhere."""
        return face_means(self.coefficient(inputs))

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return -div_h(a grad_h u) - f at the interior nodes."""
        return -diffusion_through(outputs, self.faces(inputs)) - self.right_side(inputs)

    def system(self, inputs: Tensor) -> DiffusionSystem:
        """Return the linear system A u = f of the interior nodes, in float64."""
        exact = inputs.double()
        return DiffusionSystem(self.faces(exact), self.right_side(exact))

    def system_of_fields(self, inputs: Tensor) -> DiffusionSystem:
        """Return the systems of inputs (batch, channels, height, width), one per sample.

        Channels after those of the equation, such as scalar parameters, are left out.
        """
        system = self.system(inputs[:, : self.channels[0]])
        faces = system.faces
        if faces is not None:
            faces = (faces[0].flatten(0, -3), faces[1].flatten(0, -3))
        return DiffusionSystem(faces, system.right_side.flatten(0, -3))


@dataclass(frozen=True)
class DiffusionSystem:
    """A u = f at the interior nodes: A = -div_h(a grad_h), symmetric and positive definite.

    Fields are (..., height - 2, width - 2); beyond them they are 0.
    """

    faces: Faces | None  # a; None stands for 1 everywhere
    right_side: Tensor  # f

    @property
    def grid(self) -> Grid:
        rows, columns = self.right_side.shape[-2:]
        return Grid((rows + 2, columns + 2))

    def apply(self, interior: Tensor) -> Tensor:
        """Return A u."""
        return diffusion_through(with_boundary(interior), self.faces).neg_()

    def precondition(self, residual: Tensor) -> Tensor:
        """Return about L^-1 r, L being A with a = 1; it is exact where a is 1.

        On a CPU single precision halves the cost of a preconditioner; what decides on the solution
        is the residual, which is always double.
        """
        cheap = self.faces is not None and not residual.is_cuda
        return solve_laplace(residual.neg().to(torch.float32 if cheap else torch.float64)).double()

    def solve(self, **options: Any) -> CGResult:
        """Return the interior solution by conjugate gradients; options are those of them."""
        return conjugate_gradients(
            self.apply, self.right_side, precondition=self.precondition, **options
        )


def in_solver_parts(solve: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """Return solve(inputs), by conjugate gradients on as many samples as suit the device."""
    return in_parts(
        solve, inputs, values=inputs[0].numel(), cpu=_SOLVE_VALUES, cuda=_SOLVE_VALUES_CUDA
    )


def diffusion(fields: Tensor, coefficient: Tensor | None = None) -> Tensor:
    """Return div_h(a grad_h u) at the interior nodes; a = 1 without `coefficient`.

    Centred differences of the fluxes through cell faces, a taken there as the arithmetic mean of
    the two nodes. Both arguments (..., height, width), result (..., height - 2, width - 2).
    """
    return diffusion_through(fields, None if coefficient is None else face_means(coefficient))


def face_means(coefficient: Tensor) -> Faces:
    """Return the coefficient at the faces that interior nodes have across rows and columns."""
    rows, columns = coefficient[..., 1:-1], coefficient[..., 1:-1, :]
    return (
        0.5 * (rows[..., 1:, :] + rows[..., :-1, :]),
        0.5 * (columns[..., 1:] + columns[..., :-1]),
    )


def diffusion_through(fields: Tensor, faces: Faces | None) -> Tensor:
    """Return div_h(a grad_h u) with a given at faces: what repeated products need."""
    return divergence(fluxes(fields, faces))


def fluxes(fields: Tensor, faces: Faces | None = None) -> Faces:
    """Return a times the differences of fields (..., height, width) across faces."""
    down, right = fields[..., 1:-1].diff(dim=-2), fields[..., 1:-1, :].diff(dim=-1)
    return (down, right) if faces is None else (down * faces[0], right * faces[1])


def divergence(flux: Faces) -> Tensor:
    """Return the differences of fluxes at the interior nodes, by the squares of the spacing."""
    down, right = flux
    height, width = Grid((down.shape[-2] + 1, right.shape[-1] + 1)).spacing
    return down.diff(dim=-2) / height**2 + right.diff(dim=-1) / width**2


def with_boundary(interior: Tensor) -> Tensor:
    """Return interior values (..., height - 2, width - 2) as fields that are 0 on the boundary."""
    return functional.pad(interior, (1, 1, 1, 1))


def solve_laplace(interior: Tensor) -> Tensor:
    """Return the interior solution of Laplace_h(u) = f for interior values f, u = 0 outside.

    Argument and result (..., height - 2, width - 2).
    """
    height, width = interior.shape[-2:]
    eigenvalues = laplacian_eigenvalues(Grid((height + 2, width + 2)), interior.device)
    fields = interior.reshape(-1, height, width)
    solution = sine_transform(sine_transform(fields) / eigenvalues.to(fields.dtype))
    return solution.reshape(interior.shape)


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
