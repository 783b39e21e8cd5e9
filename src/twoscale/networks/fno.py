"""The Fourier neural operator in two dimensions (Li et al., 2021).

Inside, channels come last: with fields as (batch, height, width, channels) everything is a product
of matrices. The gradients are written out: automatic differentiation would go over the fields
twice as often.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from twoscale.errors import TwoscaleError


class FNO2d(nn.Module):
    """Lifting, Fourier layers with a pointwise bypass, GELU after each, and a two-layer head.

    Maps normalised fields (batch, channels in, height, width) to (batch, channels out, height,
    width), on any grid. Along an ordinary axis the coordinate is appended to the input, and
    `padding` nodes at the far edge keep the periodic transform off the boundary. A periodic axis
    is not padded, and its coordinate is appended as cosine and sine.

    channels_in, channels_out: of the fields.
    layers: the number of Fourier layers.
    width: channels between the layers.
    modes: Fourier modes per axis (or along rows and columns). A grid that has fewer, at most half
        of its padded side, uses the lowest ones.
    padding: nodes added to each ordinary axis of more than one node.
    head: channels inside the head.
    shape: the grid, if there is only one. Modes that it lacks then get no weights.
    periodic: whether rows and columns wrap.
    seed: of the first weights.

    >>> FNO2d(3, 2, width=4, periodic=(True, False))(torch.zeros(5, 3, 16, 20)).shape
    torch.Size([5, 2, 16, 20])
    """

    def __init__(
        self,
        channels_in: int = 1,
        channels_out: int = 1,
        *,
        layers: int = 4,
        width: int = 32,
        modes: int | tuple[int, int] = 12,
        padding: int = 8,
        head: int = 128,
        shape: tuple[int, int] | None = None,
        periodic: tuple[bool, bool] = (False, False),
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.channels_in = channels_in
        self.padding = padding
        self.periodic = periodic
        rows, columns = (modes, modes) if isinstance(modes, int) else modes
        if shape is not None:
            height, length = self._padded(shape)
            rows, columns = usable_modes(height, rows), usable_modes(length, columns)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # A coordinate along an ordinary axis, its cosine and sine along a periodic one.
            self.lift = Pointwise(channels_in + 2 + periodic.count(True), width)
            self.layers = nn.ModuleList(
                FourierConvolution(width, (rows, columns)) for _ in range(layers)
            )
            self.head = nn.Sequential(
                Pointwise(width, head), nn.GELU(), Pointwise(head, channels_out)
            )

    def forward(self, fields: Tensor) -> Tensor:
        _, channels, height, width = fields.shape
        if channels != self.channels_in:
            raise TwoscaleError(
                f"this network reads fields of {self.channels_in} channels, got {channels}: pass "
                "(batch, channels, height, width)"
            )
        x = self.lift(self._with_coordinates(fields))
        whole = self._padded((height, width))
        if whole != (height, width):
            x = functional.pad(x, (0, 0, 0, whole[1] - width, 0, whole[0] - height))
        for layer in self.layers:
            x = functional.gelu(layer(x))
        out = self.head(x[:, :height, :width])  # (batch, height, width, channels out)
        # A view of one channel, so that its gradient arrives without odd strides.
        return out.permute(0, 3, 1, 2) if out.shape[-1] > 1 else out.view(-1, 1, height, width)

    def _padded(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Return the grid of the Fourier layers."""
        rows, columns = (
            side if side == 1 or wraps else side + self.padding
            for side, wraps in zip(shape, self.periodic, strict=True)
        )
        return rows, columns

    def _with_coordinates(self, fields: Tensor) -> Tensor:
        """Return (batch, height, width, channels): fields, row and column coordinates."""
        batch, _, height, width = fields.shape
        parts = [fields.permute(0, 2, 3, 1)]
        for axis, side in enumerate((height, width)):
            kind: dict[str, Any] = {"dtype": fields.dtype, "device": fields.device}
            nodes = torch.linspace(0, 1, side, **kind)[:, None]  # (side, 1)
            if self.periodic[axis]:
                angle = 2 * torch.pi / side * torch.arange(side, **kind)
                nodes = torch.stack([angle.cos(), angle.sin()], 1)
            places = nodes[:, None] if axis == 0 else nodes
            parts.append(places.expand(batch, height, width, -1))
        return torch.cat(parts, -1)


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
