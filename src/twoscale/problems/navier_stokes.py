"""Forced two-dimensional flow on a periodic square: from the forcing to the final vorticity."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, ClassVar

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.problems.base import Problem, in_parts
from twoscale.problems.parameters import check_positive
from twoscale.problems.random_field import standard_normals

_SHIFT = 9.0  # of the eigenvalues of the forcing's covariance
_SOLVE_VALUES = 2**17  # nodes solved for together: few enough to stay in a CPU's cache
_SOLVE_VALUES_CUDA = 2**25


@dataclass(frozen=True)
class NavierStokes(Problem):
    """dw/dt + v . grad(w) - nu Laplace(w) = f on the periodic square (0, 2 pi)^2; f to w(T).

    The velocity v follows from the vorticity w by its stream function: -Laplace(psi) = w and
    v = (d psi / dy, -d psi / dx). The forcing f does not depend on time, and the initial vorticity
    is the same for all samples. Rows are x, columns are y. f is a sum over 50 modes (a, b) of
    (theta_1 cos(ax + by) + theta_2 sin(ax + by)) (9 + a^2 + b^2)^-2 / (sqrt(2) pi) with standard
    normal theta. Modes and initial vorticity are those of de Hoop, Huang, Qian and Stuart (2022).

    Parameters
    ----------
    viscosity
        nu, 1 / 40 by default.
    time
        T, 10 by default.
    steps
        Number of time steps, 10 by default; their relative error is then about 2e-6.

    Examples
    --------
    >>> problem = NavierStokes()
    >>> forcing = problem.sample(problem.grid(16, 16), [0, 1], seed=0)
    >>> problem.solve(forcing).shape
    torch.Size([2, 16, 16])
    """

    viscosity: float = 1 / 40
    time: float = 10.0
    steps: int = 10

    name: ClassVar[str] = "navier-stokes"
    number: ClassVar[int] = 3
    boundary: ClassVar[str] = "periodic"
    periodic: ClassVar[tuple[bool, bool]] = (True, True)
    fewest_nodes: ClassVar[int] = 16  # a third of them is above 5, the highest wave number of f
    solver: ClassVar[str] = (
        "pseudo-spectral, wave numbers from a third of the nodes on removed, exact diffusion, "
        "Runge-Kutta of order 4, float64"
    )

    def __post_init__(self) -> None:
        check_positive(self)

    @property
    def distribution(self) -> dict[str, Any]:
        kind = "sum of Fourier modes with normal coefficients"
        return {"kind": kind, "modes": len(_recipe()["modes"]), "shift": _SHIFT, "power": -2}

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        shape = (len(_recipe()["modes"]), 2)
        normals = standard_normals(shape, indices, entropy=self.entropy(grid, seed))
        return fields_of(torch.from_numpy(normals).to(device), grid)

    def solve(self, inputs: Tensor) -> Tensor:
        grid = self.grid(*inputs.shape[-2:])
        waves = _Waves(grid, inputs.device)
        initial = fields_of(torch.tensor([_recipe()["initial"]], dtype=torch.float64), grid)
        start = waves.transform(initial[0].to(inputs.device))
        return in_parts(
            lambda part: self._solve(part.double(), start, waves),
            inputs,
            values=grid.nodes,
            cpu=_SOLVE_VALUES,
            cuda=_SOLVE_VALUES_CUDA,
        )

    def _solve(self, inputs: Tensor, start: Tensor, waves: _Waves) -> Tensor:
        forcing = waves.transform(inputs)
        vorticity = start.expand_as(forcing)
        step = self.time / self.steps
        half = torch.exp(-0.5 * step * self.viscosity * waves.squares)
        for _ in range(self.steps):
            vorticity = _step(vorticity, forcing, waves, step, half)
        return waves.field(vorticity)


def fields_of(coefficients: Tensor, grid: Grid) -> Tensor:
    """Return the fields (batch, height, width) of coefficients (batch, modes, 2) of cos and sin."""
    basis = _basis(grid, coefficients.device)
    return (coefficients.flatten(1) @ basis.flatten(0, 1).flatten(1)).unflatten(1, grid.shape)


@lru_cache(maxsize=1)
def _recipe() -> dict[str, Any]:
    """Return the wave numbers of the modes, and the coefficients of the initial vorticity."""
    place = files("twoscale.problems").joinpath("navier_stokes.json")
    recipe: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return recipe


@lru_cache(maxsize=4)
def _basis(grid: Grid, device: torch.device) -> Tensor:
    """Return the scaled modes (modes, 2, height, width) at the nodes."""
    modes = torch.tensor(_recipe()["modes"], dtype=torch.float64)
    rows, columns = (
        2 * math.pi / size * torch.arange(size, dtype=torch.float64) for size in grid.shape
    )
    phase = modes[:, 0, None, None] * rows[:, None] + modes[:, 1, None, None] * columns
    scale = (_SHIFT + modes.square().sum(1)) ** -2 / (math.sqrt(2) * math.pi)
    return (torch.stack([phase.cos(), phase.sin()], 1) * scale[:, None, None, None]).to(device)


class _Waves:
    """The wave numbers of a periodic grid, and what is done with spectra (..., height, half)."""

    def __init__(self, grid: Grid, device: torch.device) -> None:
        self.shape = grid.shape
        height, width = grid.shape
        options = {"dtype": torch.float64, "device": device}
        rows = torch.fft.fftfreq(height, 1 / height, **options)[:, None]
        columns = torch.fft.rfftfreq(width, 1 / width, **options)
        self.kept = (3 * rows.abs() < height) & (3 * columns < width)
        self.derivatives = (1j * rows, 1j * columns)
        self.squares = rows.square() + columns.square()
        self.inverse_squares = torch.where(self.squares > 0, 1 / self.squares, 0.0)

    def transform(self, fields: Tensor) -> Tensor:
        """Return the spectra of fields, high wave numbers removed."""
        return torch.fft.rfft2(fields) * self.kept

    def field(self, spectra: Tensor) -> Tensor:
        return torch.fft.irfft2(spectra, s=self.shape)

    def advection(self, vorticity: Tensor) -> Tensor:
        """Return the spectrum of v . grad(w)."""
        by_x, by_y = self.derivatives
        stream = vorticity * self.inverse_squares
        product = self.field(by_y * stream) * self.field(by_x * vorticity)
        product -= self.field(by_x * stream) * self.field(by_y * vorticity)
        return self.transform(product)


def _step(w: Tensor, forcing: Tensor, waves: _Waves, step: float, half: Tensor) -> Tensor:
    """Return the spectrum of the vorticity one step later.

    Runge-Kutta of order 4 for exp(nu k^2 t) w, so that diffusion is exact and sets no limit to the
    step. `half` is the decay exp(-nu k^2 step / 2) over half a step.
    """
    decayed, whole = half * w, half.square()
    first = forcing - waves.advection(w)
    second = forcing - waves.advection(decayed + 0.5 * step * (half * first))
    third = forcing - waves.advection(decayed + 0.5 * step * second)
    fourth = forcing - waves.advection(half * (decayed + step * third))
    slopes = whole * first + 2 * half * (second + third) + fourth
    return whole * w + step / 6 * slopes
