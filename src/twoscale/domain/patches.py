"""Rectangular patches of a grid: extraction, weighted assembly, seams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.cuts import Cuts
from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError

Pair = tuple[int, int]

_USUAL = 4  # patches per axis, by default


def as_pair(counts: Any) -> Pair:
    """Return patches per axis as (rows, columns); one number stands for both.

    >>> as_pair(4), as_pair((2, 3))
    ((4, 4), (2, 3))
    """
    pair = (counts, counts) if isinstance(counts, int | np.integer) else counts
    whole = isinstance(pair, tuple | list) and len(pair) == 2
    if not whole or not all(isinstance(one, int | np.integer) and one > 0 for one in pair):
        raise TwoscaleError(
            f"patches are a count such as 4, or rows and columns such as (4, 2), got {counts!r}"
        )
    return int(pair[0]), int(pair[1])


@dataclass(frozen=True)
class Seams:
    """The rows and columns of a grid at which a patch starts, or before which one stops."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    grid: Grid

    def __bool__(self) -> bool:
        return bool(self.rows or self.columns)


@dataclass(frozen=True)
class PatchLayout:
    """Patches that cover a grid: every interval of rows with every interval of columns.

    Patches are numbered row by row. Where their sizes differ, smaller ones are filled up with zeros
    to the size of the largest, so that all patches are one tensor. All pairs are (rows, columns).

    Parameters
    ----------
    rows, columns
        The intervals of nodes along the height and along the width.

    Examples
    --------
    >>> layout = PatchLayout.tiling(Grid(8, 9), (2, 2))
    >>> layout.count, layout.patch
    (4, (4, 5))
    >>> layout.extract(torch.zeros(3, 1, 8, 9)).shape
    torch.Size([3, 4, 20])
    """

    rows: Cuts
    columns: Cuts

    @classmethod
    def tiling(
        cls, grid: Grid, counts: Pair, *, overlap: bool = False, smallest: int = 2
    ) -> PatchLayout:
        """Return `counts` patches per axis side by side; with `overlap` also those in between.

        Sides differ by at most one node, and have at least `smallest` nodes. On an axis that is too
        short, four patches or fewer become fewer still; more than four are refused.
        """
        cut = Cuts.overlapping if overlap else Cuts.equal
        axes = []
        for axis, size, count, periodic in zip(
            ("height", "width"), grid.shape, counts, grid.periodic, strict=True
        ):
            most = max(size // smallest, 1)
            if count < 1 or count > max(most, _USUAL):
                raise TwoscaleError(
                    f"a {axis} of {size} nodes can be cut into 1 to {most} patches, got {count}: "
                    "set patches, as rows and columns"
                )
            axes.append(cut(size, min(count, most), periodic=periodic and size > 1))
        return cls(*axes)

    @classmethod
    def seams_of(cls, grid: Grid, counts: Pair) -> PatchLayout:
        """Return the patches on whose seams all methods are compared: fewer where nodes are few."""
        rows, columns = (
            min(count, max(size // 2, 1)) for size, count in zip(grid.shape, counts, strict=True)
        )
        return cls.tiling(grid, (rows, columns))

    @classmethod
    def strided(cls, shape: Pair, patch: Pair, stride: Pair) -> PatchLayout:
        """Return patches of one size at a fixed stride that cover the grid exactly."""
        rows, columns = (Cuts.strided(*axis) for axis in zip(shape, patch, stride, strict=True))
        return cls(rows, columns)

    @cached_property
    def grid(self) -> Grid:
        axes = (self.rows, self.columns)
        height, width = (axis.size for axis in axes)
        return Grid(height, width, (self.rows.periodic, self.columns.periodic))

    @cached_property
    def shape(self) -> Pair:
        return (self.rows.size, self.columns.size)

    @cached_property
    def counts(self) -> Pair:
        """Return the number of patches per axis."""
        return (self.rows.count, self.columns.count)

    @cached_property
    def count(self) -> int:
        return self.rows.count * self.columns.count

    @cached_property
    def patch(self) -> Pair:
        """Return the size of the largest patch."""
        return (self.rows.side, self.columns.side)

    @cached_property
    def features(self) -> int:
        """Return the number of nodes of the largest patch."""
        return self.rows.side * self.columns.side

    @cached_property
    def overlaps(self) -> bool:
        return self.rows.overlaps or self.columns.overlaps

    @cached_property
    def stride(self) -> Pair | None:
        """Return the distance of neighbours if all patches are alike, else None."""
        rows, columns = self.rows.stride, self.columns.stride
        return None if rows is None or columns is None else (rows, columns)

    @cached_property
    def seams(self) -> Seams:
        return Seams(self.rows.seams, self.columns.seams, self.grid)

    @cached_property
    def inside(self) -> Tensor:
        """Say of each place (count, features) whether it is a node of the patch."""
        both = self.rows.inside[:, None, :, None] & self.columns.inside[None, :, None, :]
        return both.reshape(self.count, self.features)

    @cached_property
    def nodes(self) -> Tensor:
        """Return the flat node numbers (count, features) of all patches."""
        rows, columns = self.rows.positions, self.columns.positions
        both = rows[:, None, :, None] * self.columns.size + columns[None, :, None, :]
        return both.reshape(self.count, self.features)

    @cached_property
    def _covers(self) -> Tensor:
        """Return, for each node, the places of it in all patches; filled up with one that is none.

        (most, nodes), as numbers of the flattened (count x features) places; count x features
        stands for none.
        """
        places = self.inside.flatten().nonzero()[:, 0]
        nodes = self.nodes.flatten()[places]
        order = nodes.argsort(stable=True)
        times = torch.bincount(nodes, minlength=self.rows.size * self.columns.size)
        first = times.cumsum(0) - times
        rank = torch.arange(len(order)) - first[nodes[order]]
        shape = (int(times.max()), len(times))
        covers = torch.full(shape, self.count * self.features)
        covers[rank, nodes[order]] = places[order]
        return covers

    def extract(self, fields: Tensor) -> Tensor:
        """Return the patches of fields (batch, channels, height, width).

        The result is (batch, count, channels x features): channel after channel.
        """
        batch, channels = fields.shape[:2]
        if self.stride is not None:
            views = fields.unfold(2, self.rows.side, self.stride[0])
            views = views.unfold(3, self.columns.side, self.stride[1])
            apart = views.permute(0, 2, 3, 1, 4, 5)
            return apart.reshape(batch, self.count, channels * self.features)
        places = _places(self, fields.device)
        values = fields.flatten(2).index_select(2, places.nodes)
        values = values.unflatten(2, (self.count, self.features))
        if places.inside is not None:
            values = values * places.inside.to(values.dtype)
        return values.transpose(1, 2).flatten(2)

    def part(self, patches: slice) -> LayoutPart:
        """Return consecutive patches, with the rows and columns of the grid that they lie in."""
        across = self.columns.count
        chosen = range(self.count)[patches]
        first, last = chosen[0] // across, chosen[-1] // across
        rows, row_cuts = self.rows.part(slice(first, last + 1))
        left = chosen[0] % across if first == last else 0
        width = len(chosen) if first == last else across
        columns, column_cuts = self.columns.part(slice(left, left + width))
        skipped = chosen[0] - first * across - left
        inner = slice(skipped, skipped + len(chosen))
        return LayoutPart(rows, columns, PatchLayout(row_cuts, column_cuts), inner, self.patch)

    def assemble(self, patches: Tensor) -> Tensor:
        """Return the sum of patches (batch, count, channels x features), placed, as fields."""
        batch, channels = patches.shape[0], patches.shape[2] // self.features
        if self.stride is not None and self.overlaps:
            columns = patches.transpose(1, 2)
            return functional.fold(columns, self.shape, self.patch, stride=self.stride)
        if self.stride is not None:
            tiles = patches.reshape(batch, *self.counts, channels, *self.patch)
            return tiles.permute(0, 3, 1, 4, 2, 5).reshape(batch, channels, *self.shape)
        values = patches.unflatten(2, (channels, self.features)).transpose(1, 2).flatten(2)
        covers = _places(self, patches.device).covers
        if len(covers) == 1:
            return values.index_select(2, covers[0]).unflatten(2, self.shape)
        values = functional.pad(values, (0, 1))
        total = sum(values.index_select(2, one) for one in covers)
        assert isinstance(total, Tensor)
        return total.unflatten(2, self.shape)

    def weights(self, window: str) -> Tensor:
        """Return the normalised assembly weights (count, features), float64.

        With window w the weight of patch q at node x is w_q(x) / sum_r w_r(x), so that
        assembling the weighted patches of a field gives that field back (partition of unity).
        """
        profile = WINDOWS[window](self.patch).reshape(1, -1) * self.inside
        total = self.assemble(profile[None])
        return torch.where(self.inside, profile / self.extract(total)[0], 0.0)


@dataclass(frozen=True)
class LayoutPart:
    """Consecutive patches of a layout, and the part of the grid that they lie in.

    `layout` has the patches of these rows and columns, and `chosen` says which of them are meant.
    `patch` is the size of the largest patch of the whole layout.
    """

    rows: slice
    columns: slice
    layout: PatchLayout
    chosen: slice
    patch: Pair

    def extract(self, fields: Tensor) -> Tensor:
        """Return the patches of fields (batch, channels, rows, columns) on this part of the grid.

        They are what `PatchLayout.extract` makes of whole fields.
        """
        found = self.layout.extract(fields)[:, self.chosen]
        below, beside = (a - b for a, b in zip(self.patch, self.layout.patch, strict=True))
        if below or beside:
            apart = found.unflatten(2, (fields.shape[1], *self.layout.patch))
            found = functional.pad(apart, (0, beside, 0, below)).flatten(2)
        return found


class _Places(NamedTuple):
    """Where the nodes of patches are, on a device."""

    nodes: Tensor  # (count x features,)
    inside: Tensor | None  # (count, features); None: all places are nodes
    covers: Tensor  # (most, nodes)


@lru_cache(maxsize=64)
def _places(layout: PatchLayout, device: torch.device) -> _Places:
    """Return the places on the device; kept, so that neither way makes transfers."""
    inside = None if bool(layout.inside.all()) else layout.inside.to(device)
    return _Places(layout.nodes.flatten().to(device), inside, layout._covers.to(device))


def _uniform(patch: Pair) -> Tensor:
    return torch.ones(patch, dtype=torch.float64)


def _hann(patch: Pair) -> Tensor:
    """Outer product of symmetric Hann windows, floored so that no node is left without weight."""
    rows, columns = (torch.hann_window(side, periodic=False, dtype=torch.float64) for side in patch)
    return torch.outer(rows, columns).clamp_min(1e-6)


WINDOWS: dict[str, Callable[[Pair], Tensor]] = {"uniform": _uniform, "hann": _hann}
