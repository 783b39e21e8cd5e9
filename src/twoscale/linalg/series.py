"""Series through the nodes of a grid: sines, cosines or Fourier modes along each axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import torch
from torch import Tensor

from twoscale.fields.grid import Grid
from twoscale.linalg.transforms import sine_matrix


@dataclass(frozen=True)
class AxisSeries:
    """A series along one axis.

    Its functions are orthonormal on the nodes; where both ends are nodes of a cosine series, these
    count half.
    """

    analysis: Tensor  # (modes, nodes): coefficients of values
    synthesis: Tensor  # (nodes, modes): values of coefficients
    waves: Tensor  # (modes,): half waves along the axis; negative ones turn the other way


@dataclass(frozen=True)
class FieldSeries:
    """The series of fields (..., rows, columns), a product of those of both axes.

    Sines stand for fields that are 0 at both ends of the axis, cosines for fields without slope
    there, Fourier modes for periodic ones. Fourier coefficients are complex.
    """

    names: tuple[str, str]
    grid: Grid

    def coefficients(self, fields: Tensor) -> Tensor:
        """Return the coefficients (..., row modes, column modes) of real fields."""
        rows, columns = self.axes(fields.device, fields.dtype)
        return rows.analysis @ fields.to(rows.analysis.dtype) @ columns.analysis.mT

    def fields(self, coefficients: Tensor) -> Tensor:
        """Return the real fields (..., rows, columns) of coefficients."""
        rows, columns = self.axes(coefficients.device, coefficients.real.dtype)
        return (rows.synthesis @ coefficients @ columns.synthesis.mT).real

    def waves(self, device: torch.device) -> Tensor:
        """Return the half waves of all modes along both axes, (row modes, column modes, 2)."""
        axes = self.axes(device, torch.float64)
        return torch.stack(torch.meshgrid(*(axis.waves for axis in axes), indexing="ij"), dim=-1)

    @property
    def is_complex(self) -> bool:
        return "fourier" in self.names

    def axes(self, device: torch.device, dtype: torch.dtype) -> tuple[AxisSeries, AxisSeries]:
        """Return the series of rows and columns; both are complex if one of them is."""
        kind = dtype.to_complex() if self.is_complex else dtype
        rows, columns = (
            _axis_series(name, nodes, device, kind)
            for name, nodes in zip(self.names, self.grid.shape, strict=True)
        )
        return rows, columns


def series_of(grid: Grid) -> list[FieldSeries]:
    """Return the series that fields on a grid may have.

    >>> [one.names for one in series_of(Grid(1, 8))]
    [('cosine', 'sine'), ('cosine', 'cosine')]
    """
    sides = zip(grid.shape, grid.periodic, strict=True)
    rows, columns = (_names(nodes, periodic) for nodes, periodic in sides)
    return [FieldSeries((row, column), grid) for row, column in product(rows, columns)]


def _names(nodes: int, periodic: bool) -> tuple[str, ...]:
    if periodic:
        return ("fourier",)
    return ("sine", "cosine") if nodes > 2 else ("cosine",)


@cache
def _axis_series(name: str, nodes: int, device: torch.device, dtype: torch.dtype) -> AxisSeries:
    made = _SERIES[name](nodes)
    analysis, synthesis = (one.to(device, dtype) for one in (made.analysis, made.synthesis))
    return AxisSeries(analysis, synthesis, made.waves.to(device))


def _sines(nodes: int) -> AxisSeries:
    """The DST-I of the inner nodes; the values at both ends are neither read nor written."""
    inner = nodes - 2
    analysis = torch.zeros(inner, nodes, dtype=torch.float64)
    analysis[:, 1:-1] = sine_matrix(inner, torch.device("cpu"))
    return AxisSeries(analysis, analysis.mT, torch.arange(1, inner + 1, dtype=torch.float64))


def _cosines(nodes: int) -> AxisSeries:
    """The DCT-I, whose first and last nodes are the ends."""
    k = torch.arange(nodes, dtype=torch.float64)
    if nodes == 1:
        return AxisSeries(torch.ones_like(k)[:, None], torch.ones_like(k)[:, None], k)
    last = nodes - 1
    halves = 1 - 0.5 * (k % last == 0).double()
    waves = torch.cos(math.pi / last * torch.outer(k, k)) * math.sqrt(2 / last)
    synthesis = waves * halves.sqrt()
    return AxisSeries(synthesis.mT * halves, synthesis, k)


def _fourier(nodes: int) -> AxisSeries:
    """The discrete Fourier transform, in its usual order of frequencies."""
    k = torch.arange(nodes, dtype=torch.float64)
    angles = 2 * math.pi / nodes * (torch.outer(k, k) % nodes)
    synthesis = torch.polar(torch.full_like(angles, nodes**-0.5), angles)
    return AxisSeries(synthesis.mH, synthesis, 2 * torch.fft.fftfreq(nodes, 1 / nodes).double())


_SERIES = {"sine": _sines, "cosine": _cosines, "fourier": _fourier}
