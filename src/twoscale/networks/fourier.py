"""What a Fourier layer consists of, channels last: pointwise maps and a convolution by few modes.

With fields as (batch, height, width, channels) everything is a product of matrices. The gradients
are written out: automatic differentiation would go over the fields twice as often.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from twoscale.errors import TwoscaleError


class Pointwise(nn.Linear):
    """The same affine map of the channels at every node, (..., channels in) to (..., out)."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.in_features)
        return _Affine.apply(flat, self.weight, self.bias).view(*x.shape[:-1], -1)


class FourierConvolution(nn.Module):
    """A pointwise map plus learned complex matrices over channels on the lowest Fourier modes.

    Of the real FFT, `modes` columns and, for rows, `modes` positive and `modes` negative
    frequencies are kept (both corners). `weights` (rows, columns, channels in, real or imaginary,
    channels out) are real numbers, which every optimiser and file format understands.
    """

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.bypass = nn.Linear(channels, channels)
        shape = (2 * modes, modes, channels, 2, channels)
        self.weights = nn.Parameter(torch.rand(shape) / channels**2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, height, width, channels) to the same shape."""
        height, width = x.shape[1:3]
        if 2 * self.modes > min(height, width):
            raise TwoscaleError(
                f"{self.modes} Fourier modes need fields of at least {2 * self.modes} nodes a side "
                f"with padding, got {height}x{width}: use fewer modes"
            )
        matrices = _transforms(height, width, self.modes, x.device, x.dtype)
        weights = self.weights.flatten(0, 1).flatten(2)
        return _Convolution.apply(x, weights, self.bypass.weight, self.bypass.bias, matrices)


Matrices = tuple[Tensor, Tensor, Tensor]


@cache  # for good: recorded steps read the matrices where they lie
def _transforms(
    height: int, width: int, modes: int, device: torch.device, dtype: torch.dtype
) -> Matrices:
    """Return the kept modes' Fourier matrices, real and imaginary parts apart.

    Along rows (2 modes x re/im, height), whose transpose leads back; along columns
    (re/im x modes, re/im x width); and back along columns from the four products of a mode's parts
    with a weight's parts, (re/im x width, 4 x modes), which also scales. Only the kept modes are
    ever computed: few enough that these products are faster than FFTs of the whole field.
    """
    kept = torch.cat([torch.arange(modes), torch.arange(-modes, 0)]).double()
    phase = torch.outer(kept, torch.arange(height).double()) * (2 * math.pi / height)
    rows = torch.stack([phase.cos(), -phase.sin()], 1).flatten(0, 1)
    phase = torch.outer(torch.arange(modes).double(), torch.arange(width).double())
    cos, sin = (phase * (2 * math.pi / width)).cos(), (phase * (2 * math.pi / width)).sin()
    columns = torch.cat([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)])
    share = torch.full((modes, 1), 2.0).double()  # all but the mean stand for two modes
    share[0] = 1
    real, imaginary = (part * share / (height * width) for part in columns.chunk(2))
    back = torch.cat([real, imaginary, imaginary, -real]).T.contiguous()
    return rows.to(device, dtype), columns.to(device, dtype), back.to(device, dtype)


class _Affine(torch.autograd.Function):
    """x Wᵀ + b for x (nodes, channels)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.T)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        down = slope @ weight if ctx.needs_input_grad[0] else None
        return down, slope.T @ x, _column_sums(slope)


def _column_sums(values: Tensor) -> Tensor:
    """Return the sum of all rows, as a product: much faster on CUDA than a reduction."""
    return values.T @ values.new_ones(len(values))


class _Convolution(torch.autograd.Function):
    """The pointwise map plus the convolution, with weights as (modes, in, re/im x out)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weights: Tensor, bypass: Tensor, bias: Tensor, matrices: Matrices
    ) -> Tensor:
        rows, columns, back = matrices
        spectrum = _modes(_along(columns, _along_rows(rows, x)), len(x), 2)
        products = _lines(torch.bmm(spectrum, weights), len(x), 4)
        out = torch.addmm(bias, x.flatten(0, 2), bypass.T).view(x.shape)
        ctx.save_for_backward(x, spectrum, weights, bypass)
        ctx.matrices = matrices
        return _add_back(out, rows, _along(back, products))

    @staticmethod
    @once_differentiable  # the spectrum is kept: second derivatives would miss its share
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        x, spectrum, weights, bypass = ctx.saved_tensors
        rows, columns, back = ctx.matrices
        slope = slope.contiguous()
        products = _modes(_along(back.T, _along_rows(rows, slope)), len(x), 4)
        down = _lines(torch.bmm(products, weights.mT), len(x), 2)
        flat = slope.flatten(0, 2)
        out = (flat @ bypass).view(x.shape)
        _add_back(out, rows, _along(columns.T, down))
        weight_slope = torch.bmm(spectrum.mT, products)
        return out, weight_slope, flat.T @ x.flatten(0, 2), _column_sums(flat), None


def _along_rows(rows: Tensor, x: Tensor) -> Tensor:
    """Return the row transforms (batch x row modes, re/im x width, channels) of fields."""
    batch, _, width, channels = x.shape
    lines = torch.bmm(rows.expand(batch, -1, -1), x.flatten(2))
    return lines.view(-1, 2 * width, channels)


def _along(matrix: Tensor, lines: Tensor) -> Tensor:
    return torch.bmm(matrix.expand(len(lines), -1, -1), lines)


def _add_back(out: Tensor, rows: Tensor, lines: Tensor) -> Tensor:
    """Add to fields, in place, what row transforms stand for; return the fields."""
    batch = len(out)
    out.flatten(2).baddbmm_(rows.T.expand(batch, -1, -1), lines.view(batch, len(rows), -1))
    return out


def _modes(lines: Tensor, batch: int, parts: int) -> Tensor:
    """Sort (batch x row modes, parts x column modes, channels) as (modes, batch x .., .. channels).

    Of four parts the last two belong to the weights, and go with the channels out.
    """
    _, rows, channels = lines.shape
    columns = rows // parts
    apart = lines.view(batch, -1, 2, parts // 2, columns, channels).permute(1, 4, 0, 2, 3, 5)
    return apart.reshape(-1, 2 * batch, parts // 2 * channels)


def _lines(modes: Tensor, batch: int, parts: int) -> Tensor:
    """Undo `_modes`."""
    count, _, channels = modes.shape
    columns = math.isqrt(count // 2)
    apart = modes.view(2 * columns, columns, batch, 2, parts // 2, -1).permute(2, 0, 3, 4, 1, 5)
    return apart.reshape(-1, parts * columns, channels // (parts // 2))
