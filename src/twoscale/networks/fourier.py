"""What a Fourier layer consists of, channels last: pointwise maps and a convolution by few modes.

With fields as (batch, height, width, channels) everything is a product of matrices. The gradients
are written out: automatic differentiation would go over the fields twice as often.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Pointwise(nn.Linear):
    """The same affine map of the channels at every node, (..., channels in) to (..., out)."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.in_features)
        return _Affine.apply(flat, self.weight, self.bias).view(*x.shape[:-1], -1)


class FourierConvolution(nn.Module):
    """A pointwise map plus learned complex matrices over channels on the lowest Fourier modes.

    Of the real FFT, the first columns and, for rows, as many positive as negative frequencies are
    kept (both corners): `modes` (along rows, along columns). Smaller fields use the lowest of
    them. `weights` (rows, columns, channels in, real or imaginary, channels out) are real numbers,
    which every optimiser and file format understands.
    """

    def __init__(self, channels: int, modes: tuple[int, int]) -> None:
        super().__init__()
        self.modes = modes
        self.bypass = nn.Linear(channels, channels)
        shape = (2 * modes[0], modes[1], channels, 2, channels)
        self.weights = nn.Parameter(torch.rand(shape) / channels**2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, height, width, channels) to the same shape."""
        height, width = x.shape[1:3]
        kept = _kept(height, width, self.modes)
        matrices = _transforms(height, width, kept, x.device, x.dtype)
        weights = self._weights(kept).flatten(0, 1).flatten(2)
        return _Convolution.apply(x, weights, self.bypass.weight, self.bypass.bias, matrices)

    def _weights(self, kept: Kept) -> Tensor:
        """Return the weights of the kept modes: all of them, unless the field is small."""
        rows, columns = self.weights.shape[:2]
        if (kept.positive + kept.negative, kept.columns) == (rows, columns):
            return self.weights
        weights = self.weights[:, : kept.columns]
        return torch.cat([weights[: kept.positive], weights[rows - kept.negative :]])


def usable_modes(side: int, modes: int) -> int:
    """Return how many of the lowest modes a side of some nodes has: half as many, one at least."""
    return max(1, min(modes, side // 2))


class Kept(NamedTuple):
    """The row frequencies 0 .. positive - 1 and -negative .. -1, and the number of columns."""

    positive: int
    negative: int
    columns: int


def _kept(height: int, width: int, modes: tuple[int, int]) -> Kept:
    """Return the modes of a field, none of them twice: a single row has no negative frequency."""
    rows, columns = modes
    return Kept(usable_modes(height, rows), min(rows, height // 2), usable_modes(width, columns))


Matrices = tuple[Tensor, Tensor, Tensor]


@cache  # for good: recorded steps read the matrices where they lie
def _transforms(
    height: int, width: int, modes: Kept, device: torch.device, dtype: torch.dtype
) -> Matrices:
    """Return the kept modes' Fourier matrices, real and imaginary parts apart.

    Along rows (row modes x re/im, height), whose transpose leads back; along columns
    (re/im x column modes, re/im x width); and back along columns from the four products of a
    mode's parts with a weight's parts, (re/im x width, 4 x column modes), which also scales. Only
    the kept modes are ever computed: few enough that these products are faster than FFTs of the
    whole field.
    """
    kept = torch.cat([torch.arange(modes.positive), torch.arange(-modes.negative, 0)]).double()
    phase = torch.outer(kept, torch.arange(height).double()) * (2 * math.pi / height)
    rows = torch.stack([phase.cos(), -phase.sin()], 1).flatten(0, 1)
    phase = torch.outer(torch.arange(modes.columns).double(), torch.arange(width).double())
    cos, sin = (phase * (2 * math.pi / width)).cos(), (phase * (2 * math.pi / width)).sin()
    columns = torch.cat([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)])
    share = torch.full((modes.columns, 1), 2.0).double()  # all but the mean stand for two modes
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
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        down = grad @ weight if ctx.needs_input_grad[0] else None
        return down, grad.T @ x, _column_sums(grad)


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
        spectrum = _modes(_along(columns, _along_rows(rows, x)), x.shape[0], 2)
        products = _lines(torch.bmm(spectrum, weights), len(rows) // 2, x.shape[0], 4)
        out = torch.addmm(bias, x.flatten(0, 2), bypass.T).view(x.shape)
        ctx.save_for_backward(x, spectrum, weights, bypass)
        ctx.matrices = matrices
        return _add_back(out, rows, _along(back, products))

    @staticmethod
    @once_differentiable  # the spectrum is kept: second derivatives would miss its share
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        x, spectrum, weights, bypass = ctx.saved_tensors
        rows, columns, back = ctx.matrices
        grad = grad.contiguous()
        products = _modes(_along(back.T, _along_rows(rows, grad)), len(x), 4)
        down = _lines(torch.bmm(products, weights.mT), len(rows) // 2, len(x), 2)
        flat = grad.flatten(0, 2)
        out = (flat @ bypass).view(x.shape)
        _add_back(out, rows, _along(columns.T, down))
        weight_grad = torch.bmm(spectrum.mT, products)
        return out, weight_grad, flat.T @ x.flatten(0, 2), _column_sums(flat), None


def _along_rows(rows: Tensor, x: Tensor) -> Tensor:
    """Return the row transforms (batch x row modes, re/im x width, channels) of fields."""
    batch, _, width, channels = x.shape
    lines = torch.bmm(rows.expand(batch, -1, -1), x.flatten(2))
    return lines.view(-1, 2 * width, channels)


def _along(matrix: Tensor, lines: Tensor) -> Tensor:
    return torch.bmm(matrix.expand(lines.shape[0], -1, -1), lines)


def _add_back(out: Tensor, rows: Tensor, lines: Tensor) -> Tensor:
    """Add to fields, in place, what row transforms stand for; return the fields."""
    batch = out.shape[0]  # not len(out): a batch of any size can be traced
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


def _lines(modes: Tensor, rows: int, batch: int, parts: int) -> Tensor:
    """Undo `_modes`, given the number of row modes."""
    count, _, channels = modes.shape
    columns, shared = count // rows, parts // 2
    apart = modes.view(rows, columns, batch, 2, shared, -1).permute(2, 0, 3, 4, 1, 5)
    return apart.reshape(-1, parts * columns, channels // shared)
