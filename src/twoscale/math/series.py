"""Series through the nodes of a grid: sines, cosines or Fourier modes along each axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.math.transforms import sine_matrix

Parts = tuple[Tensor, ...]
"""Numbers as real tensors: themselves, or their real and their imaginary parts."""


@dataclass(frozen=True)
class AxisSeries:
    """A series along one axis.

    Its functions are orthonormal on the nodes; where both ends are nodes of a cosine series, these
    count half.
    """

    analysis: Parts  # (modes, nodes): coefficients of values
    synthesis: Parts  # (nodes, modes): values of coefficients
    waves: Tensor  # (modes,): half waves along the axis; negative ones turn the other way


_COMPLEX = "fourier"


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
        return whole_numbers(self.coefficient_parts(fields))

    def fields(self, coefficients: Tensor) -> Tensor:
        """Return the real fields (..., rows, columns) of coefficients."""
        return self.fields_of_parts(parts_of(coefficients))

    def coefficient_parts(self, fields: Tensor) -> Parts:
        """Return the coefficients of real fields by parts: real arithmetic does less work."""
        rows, columns = self.axes(fields.device, fields.dtype)
        along = _products(rows.analysis, (fields,))
        return _products(along, tuple(part.mT for part in columns.analysis))

    def fields_of_parts(self, coefficients: Parts) -> Tensor:
        """Return the real fields (..., rows, columns) of coefficients by parts."""
        first = coefficients[0]
        rows, columns = self.axes(first.device, first.dtype)
        along = _products(rows.synthesis, coefficients)
        return _real_product(along, tuple(part.mT for part in columns.synthesis))

    def waves(self, device: torch.device) -> Tensor:
        """Return the half waves of all modes along both axes, (row modes, column modes, 2)."""
        axes = self.axes(device, torch.float64)
        return torch.stack(torch.meshgrid(*(axis.waves for axis in axes), indexing="ij"), dim=-1)

    @property
    def is_complex(self) -> bool:
        return _COMPLEX in self.names

    def axes(self, device: torch.device, dtype: torch.dtype) -> tuple[AxisSeries, AxisSeries]:
        """Return the series of rows and columns."""
        rows, columns = (
            _axis_series(name, nodes, device, dtype)
            for name, nodes in zip(self.names, self.grid.shape, strict=True)
        )
        return rows, columns


def series_of(grid: Grid) -> list[FieldSeries]:
    """Return the series that fields on a grid may have.

    >>> [one.names for one in series_of(Grid((1, 8)))]
    [('cosine', 'sine'), ('cosine', 'cosine')]
    """
    sides = zip(grid.shape, grid.periodic, strict=True)
    rows, columns = (_names(nodes, periodic) for nodes, periodic in sides)
    return [FieldSeries((row, column), grid) for row, column in product(rows, columns)]


def _names(nodes: int, periodic: bool) -> tuple[str, ...]:
    if periodic:
        return (_COMPLEX,)
    return ("sine", "cosine") if nodes > 2 else ("cosine",)


def parts_of(numbers: Tensor) -> Parts:
    """Return views of the real and imaginary parts of complex numbers, or real ones alone."""
    return (numbers.real, numbers.imag) if numbers.is_complex() else (numbers,)


def whole_numbers(parts: Parts) -> Tensor:
    """Undo `parts_of`."""
    return torch.complex(*parts) if len(parts) == 2 else parts[0]


def _products(one: Parts, other: Parts) -> Parts:
    """Return the product of matrices by parts."""
    if len(one) == 1:
        return tuple(one[0] @ part for part in other)
    if len(other) == 1:
        return tuple(part @ other[0] for part in one)
    return _real_product(one, other), one[0] @ other[1] + one[1] @ other[0]


def _real_product(one: Parts, other: Parts) -> Tensor:
    """Return the real part of the product of matrices."""
    real = one[0] @ other[0]
    return real - one[1] @ other[1] if len(one) == len(other) == 2 else real


@cache
def _axis_series(name: str, nodes: int, device: torch.device, dtype: torch.dtype) -> AxisSeries:
    made = _SERIES[name](nodes)
    analysis, synthesis = (
        tuple(part.to(device, dtype).contiguous() for part in parts)
        for parts in (made.analysis, made.synthesis)
    )
    return AxisSeries(analysis, synthesis, made.waves.to(device))


def _sines(nodes: int) -> AxisSeries:
    """The DST-I of the inner nodes; the values at both ends are neither read nor written."""
    inner = nodes - 2
    analysis = torch.zeros(inner, nodes, dtype=torch.float64)
    analysis[:, 1:-1] = sine_matrix(inner, torch.device("cpu"))
    return AxisSeries((analysis,), (analysis.mT,), torch.arange(1, inner + 1, dtype=torch.float64))


def _cosines(nodes: int) -> AxisSeries:
    """The DCT-I, whose first and last nodes are the ends."""
    k = torch.arange(nodes, dtype=torch.float64)
    if nodes == 1:
        return AxisSeries((torch.ones_like(k)[:, None],), (torch.ones_like(k)[:, None],), k)
    last = nodes - 1
    halves = 1 - 0.5 * (k % last == 0).double()
    waves = torch.cos(math.pi / last * torch.outer(k, k)) * math.sqrt(2 / last)
    synthesis = waves * halves.sqrt()
    return AxisSeries((synthesis.mT * halves,), (synthesis,), k)


def _fourier(nodes: int) -> AxisSeries:
    """The discrete Fourier transform, in its usual order of frequencies."""
    k = torch.arange(nodes, dtype=torch.float64)
    angles = 2 * math.pi / nodes * (torch.outer(k, k) % nodes)
    cosines, sines = nodes**-0.5 * angles.cos(), nodes**-0.5 * angles.sin()
    waves = 2 * torch.fft.fftfreq(nodes, 1 / nodes).double()
    return AxisSeries((cosines, -sines), (cosines, sines), waves)  # both are symmetric


_SERIES = {"sine": _sines, "cosine": _cosines, _COMPLEX: _fourier}
