"""A convolutional network that reads a field at full resolution, from fine to coarse and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from twoscale.errors import TwoscaleError
from twoscale.networks.periodic import (
    GridConvolution,
    Margins,
    fold,
    margins_of,
    trim,
    wrap,
)

_COARSEST = 4  # cells per direction at which everything meets everything
_FINEST = 32  # cells per direction, or about as many
_COARSE_CUT = 4  # nodes per direction of larger cells
_FEW_CELLS = 16  # per direction: larger cells leave as many at least
_MOST_MEETING = 32  # cells per direction that may meet at most along a periodic axis


class CellAxis(NamedTuple):
    """One axis in `cells` cells of `cut` nodes each, whose number is halved `halvings` times."""

    cut: int
    cells: int
    halvings: int

    @property
    def nodes(self) -> int:
        """Return the number of nodes with those added to fill the last cells."""
        return self.cut * self.cells

    @property
    def coarsest(self) -> int:
        return self.cells >> self.halvings


def usual_cut(side: int) -> int:
    """Return the nodes along a side of the cells of the finest level.

    It is the power of two that leaves nearest to 32 cells, from 23 to 45; two at least, where the
    side has eight nodes.
    """
    if side < 2 * _COARSEST:
        return 1
    return max(2, 2 ** round(math.log2(side / _FINEST)))


def coarse_cut(side: int) -> int:
    """Return the nodes along a side of the cells of a network that has to be small.

    These are four or more where 16 cells are left; otherwise as many as usual.
    """
    usual = usual_cut(side)
    return max(usual, _COARSE_CUT) if side >= _FEW_CELLS * _COARSE_CUT else usual


def divide(
    shape: tuple[int, int], cuts: Sequence[int], periodic: tuple[bool, bool]
) -> tuple[CellAxis, CellAxis]:
    """Return how rows and columns of a grid are divided into cells of about `cuts` nodes."""
    if min(cuts) < 1:
        raise TwoscaleError(f"cells have at least one node along each axis, got {tuple(cuts)}")
    rows, columns = (
        _periodic_axis(side, cut) if wraps else _ordinary_axis(side, cut)
        for side, cut, wraps in zip(shape, cuts, periodic, strict=True)
    )
    return rows, columns


def _ordinary_axis(side: int, cut: int) -> CellAxis:
    """Return an axis that is filled up until its cells can be halved down to about four."""
    cut = min(cut, side)
    cells = -(-side // cut)
    halvings = _halvings(cells)
    unit = 2**halvings
    return CellAxis(cut, -(-cells // unit) * unit, halvings)


def _periodic_axis(side: int, cut: int) -> CellAxis:
    """Return an axis of exactly as many nodes as the side has, if there is a suitable one.

    Otherwise its last node would not be followed by its first. Cuts up to a factor of two from the
    wanted one are tried. The best one is near it and leaves few cells on the coarsest level. A
    side without any (a large prime) is filled up as an ordinary one is.
    """
    ordinary = _ordinary_axis(side, cut)
    if ordinary.nodes == side:
        return ordinary
    exact = [_exact_axis(side, k) for k in range(-(-cut // 2), 2 * cut + 1) if side % k == 0]
    return min(
        (axis for axis in exact if axis.coarsest <= _MOST_MEETING),
        key=lambda axis: max(axis.cut / cut, cut / axis.cut) * max(axis.coarsest, _COARSEST),
        default=ordinary,
    )


def _exact_axis(side: int, cut: int) -> CellAxis:
    """Return an axis without added nodes: cells are halved as long as their number is even."""
    cells = side // cut
    twos = (cells & -cells).bit_length() - 1
    return CellAxis(cut, cells, min(twos, _halvings(cells)))


def _halvings(cells: int) -> int:
    """Return how often so many cells can be halved until fewer than four would be left."""
    return max(0, math.floor(math.log2(cells / _COARSEST)))


def to_cells(fields: Tensor, axes: tuple[CellAxis, CellAxis]) -> Tensor:
    """Return (batch, rows, columns, channels x nodes of a cell) from whole fields.

    The channels are in the order of `torch.nn.functional.pixel_unshuffle`: by channel, then by
    row and column inside a cell.
    """
    rows, columns = axes
    apart = fields.unflatten(3, (columns.cells, columns.cut)).unflatten(2, (rows.cells, rows.cut))
    return apart.permute(0, 2, 4, 1, 3, 5).flatten(3)


def from_cells(cells: Tensor, axes: tuple[CellAxis, CellAxis]) -> Tensor:
    """Return fields (batch, channels, height, width) from cells (batch, channels x nodes, ...)."""
    rows, columns = axes
    apart = cells.unflatten(1, (-1, rows.cut, columns.cut))
    return apart.permute(0, 1, 4, 2, 5, 3).flatten(4).flatten(2, 3)


# Of the channels, level by level; the last for all further ones.
_GROWTH = (1.0, 1.5, 2.0, 3.0, 4.0)
_MIXINGS = 4
_SMALL = 1e-3  # root mean square


class FieldEncoder(nn.Module):
    """Maps normalised fields (batch, channels in, height, width) to (batch, channels out, ...).

    Rectangles of nodes become the channels of one cell. Then come cycles: residual blocks, level by
    level on ever coarser grids down to about four cells per direction, where all cells are mixed;
    and back up, each level taking in what was seen there on the way down. A second cycle starts
    from the features of the first one and the input. An axis of few cells is not halved further
    while the other one still is.

    Ordinary axes are filled up to whole cells by repeating their last node. Convolutions wrap
    around periodic axes, so these are cut where their nodes fill whole cells, even if the cells
    are up to twice as large or half as large. Where no such cut exists (as for prime numbers of
    nodes above 32) a periodic axis is filled up too, and wraps with that seam in it.

    shape: nodes of the grid (height, width).
    channels_in, channels_out: of the fields.
    width: channels of the finest level; coarser ones have up to four times as many.
    blocks: residual blocks per level, on the way down and again on the way up.
    cycles: how often the features go down and up.
    cut: nodes of a cell along both axes, or along rows and columns; by default such that about 32
        cells are left per direction.
    periodic: whether rows and columns wrap.
    seed: of the first weights.

    >>> FieldEncoder((17, 64), channels_in=2, width=4)(torch.zeros(3, 2, 17, 64)).shape
    torch.Size([3, 1, 17, 64])
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        channels_in: int = 1,
        channels_out: int = 1,
        width: int = 64,
        blocks: int = 2,
        cycles: int = 1,
        cut: int | tuple[int, int] | None = None,
        periodic: tuple[bool, bool] = (False, False),
        seed: int = 0,
    ) -> None:
        super().__init__()
        wanted = (cut, cut) if cut is None or isinstance(cut, int) else cut
        cuts = [one or usual_cut(side) for one, side in zip(wanted, shape, strict=True)]
        self.axes = divide(shape, cuts, periodic)
        self.periodic = periodic
        rows, columns = self.axes
        nodes = rows.cut * columns.cut
        read = channels_in * nodes + periodic.count(False)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.lift = GridConvolution(read, _even(width), 3, periodic)
            self.cycles = nn.ModuleList(
                _Cycle(self.axes, width, blocks, periodic) for _ in range(cycles)
            )
            self.again = nn.ModuleList(
                GridConvolution(read, _even(width), 3, periodic) for _ in range(cycles - 1)
            )
            self.head = nn.Conv2d(_even(width), channels_out * nodes, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, fields: Tensor) -> Tensor:
        height, width = fields.shape[2:]
        cells = self._cells(fields)
        return from_cells(self.head(self._features(cells)), self.axes)[:, :, :height, :width]

    def _cells(self, fields: Tensor) -> Tensor:
        """Return (batch, channels, rows, columns): nodes of cells, and the cells' coordinates."""
        rows, columns = self.axes
        below, right = rows.nodes - fields.shape[2], columns.nodes - fields.shape[3]
        if below or right:
            fields = functional.pad(fields, (0, right, 0, below), mode="replicate")
        parts = [to_cells(fields, self.axes)]
        for axis, count in enumerate((rows.cells, columns.cells)):
            if not self.periodic[axis]:
                places = torch.linspace(-1, 1, count, dtype=fields.dtype, device=fields.device)
                places = places[:, None, None] if axis == 0 else places[:, None]
                parts.append(places.expand(*parts[0].shape[:3], 1))
        return torch.cat(parts, -1).permute(0, 3, 1, 2)  # channels last in memory

    def _features(self, cells: Tensor) -> Tensor:
        """Return the features (batch, width, rows, columns) of the finest level."""
        features = self.lift(cells)
        for again, cycle in zip([None, *self.again], self.cycles, strict=True):
            if again is not None:
                features = features + again(cells)
            features = cycle(features)
        return features


class _Cycle(nn.Module):
    """Takes features of the finest level down to the coarsest one, mixes them, and back up."""

    def __init__(
        self,
        axes: tuple[CellAxis, CellAxis],
        width: int,
        blocks: int,
        periodic: tuple[bool, bool],
    ) -> None:
        super().__init__()
        rows, columns = axes
        strides = [
            (2 if k < rows.halvings else 1, 2 if k < columns.halvings else 1)
            for k in range(max(rows.halvings, columns.halvings))
        ]
        levels = range(len(strides) + 1)
        widths = [_even(width * _GROWTH[min(k, len(_GROWTH) - 1)]) for k in levels]
        steps = list(zip(pairwise(widths), strides, strict=True))
        places = rows.coarsest * columns.coarsest

        def level(width: int) -> nn.Sequential:
            made = (_Residual(width, periodic=periodic) for _ in range(blocks))
            return nn.Sequential(*made)

        self.down = nn.ModuleList(level(w) for w in widths)
        self.coarser = nn.ModuleList(
            nn.Conv2d(a, b, stride, stride, bias=False) for (a, b), stride in steps
        )
        self.mixings = nn.ModuleList(_Mixing(places, widths[-1]) for _ in range(_MIXINGS))
        self.finer = nn.ModuleList(
            nn.ConvTranspose2d(b, a, stride, stride, bias=False) for (a, b), stride in steps
        )
        self.up = nn.ModuleList(level(w) for w in widths[:-1])

    def forward(self, features: Tensor) -> Tensor:
        features = self.down[0](features)
        seen = []
        for coarser, blocks in zip(self.coarser, self.down[1:], strict=True):
            seen.append(features)
            features = blocks(coarser(features))
        for mixing in self.mixings:
            features = mixing(features)
        for finer, blocks in zip(reversed(self.finer), reversed(self.up), strict=True):
            features = blocks(finer(features) + seen.pop())
        return features


class _Residual(nn.Module):
    """Adds a mix of p + p q, where p and q are convolutions of the cells; at first nothing.

    Coefficients act on solutions by products. Every sample is divided by the root mean square of
    all its values before. There are no constants to be added, which would cost as much time as the
    convolutions.
    """

    def __init__(
        self,
        width: int,
        kernel: int = 3,
        inside: int = 1,
        periodic: tuple[bool, bool] = (False, False),
    ) -> None:
        super().__init__()
        self.margins, _ = margins_of(kernel, periodic)
        self.factors = nn.Conv2d(width, 2 * inside * width, kernel, bias=False)
        self.mix = nn.Conv2d(inside * width, width, 1, bias=False)
        nn.init.zeros_(self.mix.weight)

    def forward(self, cells: Tensor) -> Tensor:
        return _AddProducts.apply(cells, self.factors.weight, self.mix.weight, self.margins)


class _AddProducts(torch.autograd.Function):
    """A residual block with its gradient written out, which needs half as many passes.

    `margins` of the cells are wrapped before the convolution by `factors`, the others are zero.
    """

    @staticmethod
    def forward(ctx: Any, cells: Tensor, factors: Tensor, mix: Tensor, margins: Margins) -> Tensor:
        size = torch.linalg.vector_norm(cells, dim=(1, 2, 3), keepdim=True)
        usual = cells[0].numel() ** 0.5  # the size of cells whose root mean square is one
        scale = usual / size.clamp(min=_SMALL * usual)
        unit = wrap(cells * scale, margins)
        both = functional.conv2d(unit, factors, padding=_zeros(factors, margins))
        p, q = both.chunk(2, 1)
        products = torch.addcmul(p, p, q)
        ctx.save_for_backward(scale, unit, both, products, factors, mix)
        ctx.margins = margins
        return cells + functional.conv2d(products, mix)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        scale, unit, both, products, factors, mix = ctx.saved_tensors
        inner, mix_grad = _convolution_grads(grad, products, mix, (0, 0))
        halves = torch.empty_like(both)
        (p, q), (p_grad, q_grad) = both.chunk(2, 1), halves.chunk(2, 1)
        torch.addcmul(inner, inner, q, out=p_grad)
        torch.mul(inner, p, out=q_grad)
        zeros = _zeros(factors, ctx.margins)
        unit_grad, factors_grad = _convolution_grads(halves, unit, factors, zeros)
        unit, unit_grad = trim(unit, ctx.margins), fold(unit_grad, ctx.margins)
        along = (unit_grad * unit).sum((1, 2, 3), keepdim=True)
        grad = torch.addcmul(grad, unit_grad, scale)
        grad = torch.addcmul(grad, unit, along * scale, value=-1 / unit[0].numel())
        return grad, factors_grad, mix_grad, None


def _zeros(weight: Tensor, wrapped: Margins) -> Margins:
    """Return the margins of zeros of a convolution that keeps the grid."""
    half = weight.shape[-1] // 2
    return half - wrapped[0], half - wrapped[1]


def _convolution_grads(
    grad: Tensor, cells: Tensor, weight: Tensor, zeros: Margins
) -> tuple[Tensor, Tensor]:
    """Return the gradients of a convolution by its cells and its weight."""
    one, none, wanted = [1, 1], [0, 0], [True, True, False]
    by_cells, by_weight, _ = torch.ops.aten.convolution_backward(
        grad, cells, weight, None, one, list(zeros), one, False, none, 1, wanted
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


def _even(width: float) -> int:
    return max(2, 2 * round(width / 2))
