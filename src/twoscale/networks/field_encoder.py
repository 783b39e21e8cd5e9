"""A convolutional network that reads a field at full resolution, from fine to coarse and back."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

# Of the channels, level by level; the last for all further ones.
_GROWTH = (1.0, 1.5, 2.0, 3.0, 4.0)
_COARSEST = 4  # cells per direction at which everything meets everything
_FINEST = 32  # cells per direction, or about as many
_MIXINGS = 4
_SMALL = 1e-3  # root mean square


class FieldEncoder(nn.Module):
    """Maps normalised fields (batch, height, width) to normalised fields.

    Squares of `cut` x `cut` nodes become the channels of one cell. Residual blocks follow, level
    by level on ever coarser grids down to about four cells per direction, where all cells are
    mixed; and back up, each level taking in what was seen there on the way down.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        width: int = 64,
        blocks: int = 2,
        cut: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.cut = cut or usual_cut(shape)
        cells = [-(-side // self.cut) for side in shape]
        levels = 1
        while min(cells) / 2**levels >= _COARSEST:
            levels += 1
        unit = 2 ** (levels - 1)
        cells = [-(-count // unit) * unit for count in cells]
        self.padded = tuple(count * self.cut for count in cells)
        widths = [_even(width * _GROWTH[min(k, len(_GROWTH) - 1)]) for k in range(levels)]
        coarsest = cells[0] // unit * (cells[1] // unit)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.lift = nn.Conv2d(self.cut**2 + 2, widths[0], 3, padding=1)
            self.down = nn.ModuleList(_blocks(w, blocks) for w in widths)
            self.coarser = nn.ModuleList(
                nn.Conv2d(a, b, 2, stride=2, bias=False) for a, b in pairwise(widths)
            )
            self.mixings = nn.ModuleList(_Mixing(coarsest, widths[-1]) for _ in range(_MIXINGS))
            self.finer = nn.ModuleList(
                nn.ConvTranspose2d(b, a, 2, stride=2, bias=False) for a, b in pairwise(widths)
            )
            self.up = nn.ModuleList(_blocks(w, blocks) for w in widths[:-1])
            self.head = nn.Conv2d(widths[0], self.cut**2, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, fields: Tensor) -> Tensor:
        height, width = fields.shape[1:]
        cells = self._cells(fields)
        # Half precision for all products but those of the head, which writes the field; sums are
        # kept in full precision from block to block.
        with torch.autocast("cuda", dtype=_kind(fields), enabled=fields.is_cuda):
            cells = self._features(cells)
        squares = functional.pixel_shuffle(self.head(cells), self.cut)
        return squares[:, 0, :height, :width]

    def _cells(self, fields: Tensor) -> Tensor:
        """Return (batch, channels, rows, columns): squares of nodes with their coordinates."""
        missing = [whole - side for whole, side in zip(self.padded, fields.shape[1:], strict=True)]
        whole = functional.pad(fields[:, None], (0, missing[1], 0, missing[0]), mode="replicate")
        squares = functional.pixel_unshuffle(whole, self.cut)
        batch, _, rows, columns = squares.shape
        y = torch.linspace(-1, 1, rows, dtype=fields.dtype, device=fields.device)
        x = torch.linspace(-1, 1, columns, dtype=fields.dtype, device=fields.device)
        places = (y[:, None].expand(batch, 1, rows, columns), x.expand(batch, 1, rows, columns))
        return torch.cat([squares, *places], 1).contiguous(memory_format=torch.channels_last)

    def _features(self, cells: Tensor) -> Tensor:
        """Return the features (batch, width, rows, columns) of the finest level."""
        kind = cells.dtype
        cells = self.down[0](self.lift(cells).to(kind))
        seen = []
        for coarser, blocks in zip(self.coarser, self.down[1:], strict=True):
            seen.append(cells)
            cells = blocks(coarser(cells).to(kind))
        for mixing in self.mixings:
            cells = mixing(cells)
        for finer, blocks in zip(reversed(self.finer), reversed(self.up), strict=True):
            cells = blocks(finer(cells) + seen.pop())
        return cells


class _Residual(nn.Module):
    """Adds a mix of p + p q, where p and q are convolutions of the cells; at first nothing.

    Coefficients act on solutions by products. Every sample is divided by the root mean square of
    all its values before. There are no constants to be added, which would cost as much time as the
    convolutions.
    """

    def __init__(self, width: int, kernel: int = 3, inside: int = 1) -> None:
        super().__init__()
        factors = 2 * inside * width
        self.factors = nn.Conv2d(width, factors, kernel, padding=kernel // 2, bias=False)
        self.mix = nn.Conv2d(inside * width, width, 1, bias=False)
        nn.init.zeros_(self.mix.weight)

    def forward(self, cells: Tensor) -> Tensor:
        return _AddProducts.apply(cells, self.factors.weight, self.mix.weight)


class _AddProducts(torch.autograd.Function):
    """What a residual block does. The gradient is written out: it costs half as many passes."""

    @staticmethod
    def forward(ctx: Any, cells: Tensor, factors: Tensor, mix: Tensor) -> Tensor:
        kind = _kind(cells)
        factors, mix = factors.to(kind), mix.to(kind)
        size = torch.linalg.vector_norm(cells, dim=(1, 2, 3), keepdim=True)
        usual = cells[0].numel() ** 0.5  # the size of cells whose root mean square is one
        scale = usual / size.clamp(min=_SMALL * usual)
        unit = torch.mul(cells, scale, out=torch.empty_like(cells, dtype=kind))
        both = functional.conv2d(unit, factors, padding=factors.shape[-1] // 2)
        p, q = both.chunk(2, 1)
        products = torch.addcmul(p, p, q)
        ctx.save_for_backward(scale, unit, both, products, factors, mix)
        return cells + functional.conv2d(products, mix)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale, unit, both, products, factors, mix = ctx.saved_tensors
        inner, mix_slope = _convolution_slopes(slope.to(unit.dtype), products, mix)
        halves = torch.empty_like(both)
        (p, q), (p_slope, q_slope) = both.chunk(2, 1), halves.chunk(2, 1)
        torch.addcmul(inner, inner, q, out=p_slope)
        torch.mul(inner, p, out=q_slope)
        turned, factors_slope = _convolution_slopes(halves, unit, factors)
        along = (turned * unit).sum((1, 2, 3), keepdim=True, dtype=scale.dtype)
        slope = torch.addcmul(slope, turned, scale)
        slope = torch.addcmul(slope, unit, along * scale, value=-1 / unit[0].numel())
        return slope, factors_slope.to(scale.dtype), mix_slope.to(scale.dtype)


def _convolution_slopes(slope: Tensor, cells: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of a convolution that keeps the grid, by its cells and its weight."""
    padding = [weight.shape[-1] // 2] * 2
    one, none, wanted = [1, 1], [0, 0], [True, True, False]
    by_cells, by_weight, _ = torch.ops.aten.convolution_backward(
        slope, cells, weight, None, one, padding, one, False, none, 1, wanted
    )
    return by_cells, by_weight


class _Mixing(nn.Module):
    """Mixes all cells of a coarse grid, then all channels of each cell."""

    def __init__(self, cells: int, width: int) -> None:
        super().__init__()
        self.places = nn.Linear(cells, cells)
        self.channels = _Residual(width, 1, 2)

    def forward(self, cells: Tensor) -> Tensor:
        mixed = functional.gelu(self.places(cells.flatten(2))).view_as(cells)
        return self.channels(cells + mixed)


def _kind(cells: Tensor) -> torch.dtype:
    """Return the precision of products: half on CUDA devices."""
    return torch.bfloat16 if cells.is_cuda else cells.dtype


def usual_cut(shape: tuple[int, int]) -> int:
    """Return the side of the squares of nodes that become one cell of the finest level.

    It is the power of two that leaves nearest to 32 cells per direction, from 23 to 45; two at
    least, where the field has the nodes.
    """
    side = min(shape)
    if side < 2 * _COARSEST:
        return 1
    return max(2, 2 ** round(math.log2(side / _FINEST)))


def _blocks(width: int, count: int) -> nn.Sequential:
    return nn.Sequential(*(_Residual(width) for _ in range(count)))


def _even(width: float) -> int:
    return max(2, 2 * round(width / 2))
