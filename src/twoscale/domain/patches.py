"""Parts of a domain: extraction, weighted assembly, seams; rectangular patches of a grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.cuts import Axis, Cuts
from twoscale.errors import TwoscaleError


def as_pair(counts: Any) -> tuple[int, int]:
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
    """The places along each axis of a grid at which a patch starts, or before which one stops."""

    places: tuple[tuple[int, ...], ...]
    axes: tuple[Axis, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        """Return the rows of a plane with a seam; a line has none."""
        return self.places[-2] if len(self.places) > 1 else ()

    @property
    def columns(self) -> tuple[int, ...]:
        return self.places[-1]

    def __bool__(self) -> bool:
        return any(self.places)


class Partition:
    """Parts of a domain that cover it, filled up with zeros to the size of the largest.

    So all parts are one tensor. `shape` is that of one channel. Subclasses are values: equal ones
    have the same hash.
    """

    shape: tuple[int, ...]

    @property
    def index(self) -> Tensor:
        """Return the flat node numbers (count, features) of all parts."""
        raise NotImplementedError

    @property
    def inside(self) -> Tensor:
        """Say of each place (count, features) whether it is a node of the part."""
        raise NotImplementedError

    @cached_property
    def count(self) -> int:
        """Return the number of parts."""
        return self.index.shape[0]

    @cached_property
    def features(self) -> int:
        """Return the number of nodes of the largest part."""
        return self.index.shape[1]

    @cached_property
    def overlaps(self) -> bool:
        return int(self.inside.sum()) != prod(self.shape)

    def extract(self, fields: Tensor) -> Tensor:
        """Return the parts of fields (batch, channels, *shape).

        The result is (batch, count, channels x features): channel after channel.
        """
        places = _places(self, fields.device)
        values = fields.flatten(2).index_select(2, places.nodes)
        values = values.unflatten(2, (self.count, self.features))
        if places.inside is not None:
            values = values * places.inside.to(values.dtype)
        return values.transpose(1, 2).flatten(2)

    def assemble(self, parts: Tensor) -> Tensor:
        """Return the sum of parts (batch, count, channels x features), placed, as fields."""
        channels = parts.shape[2] // self.features
        values = parts.unflatten(2, (channels, self.features)).transpose(1, 2).flatten(2)
        covers = _places(self, parts.device).covers
        if len(covers) == 1:
            return values.index_select(2, covers[0]).unflatten(2, self.shape)
        values = functional.pad(values, (0, 1))
        total = sum(values.index_select(2, one) for one in covers)
        assert isinstance(total, Tensor)
        return total.unflatten(2, self.shape)

    def covers(self) -> Tensor:
        """Return, for each node, the places of it in all parts; filled up with one that is none.

        (most, nodes), as numbers of the flattened (count x features) places; count x features
        stands for none.
        """
        places = self.inside.flatten().nonzero()[:, 0]
        nodes = self.index.flatten()[places]
        order = nodes.argsort(stable=True)
        times = torch.bincount(nodes, minlength=prod(self.shape))
        first = times.cumsum(0) - times
        rank = torch.arange(len(order)) - first[nodes[order]]
        covers = torch.full((int(times.max()), len(times)), self.count * self.features)
        covers[rank, nodes[order]] = places[order]
        return covers


class _Places(NamedTuple):
    """Where the nodes of parts are, on a device."""

    nodes: Tensor  # (count x features,)
    inside: Tensor | None  # (count, features); None: all places are nodes
    covers: Tensor  # (most, nodes)


@lru_cache(maxsize=64)
def _places(partition: Partition, device: torch.device) -> _Places:
    """Return the places on the device; kept, so that neither way makes transfers."""
    inside = None if bool(partition.inside.all()) else partition.inside.to(device)
    index, covers = partition.index.flatten(), partition.covers()
    return _Places(index.to(device), inside, covers.to(device))


@dataclass(frozen=True)
class PatchLayout(Partition):
    """Patches that cover a grid: every interval of one axis with every interval of the others.

    Patches are numbered row by row. Where their sizes differ, smaller ones are filled up with zeros
    to the size of the largest. Tuples have one entry for each axis.

    Parameters
    ----------
    axes
        The intervals of nodes along each axis.

    Examples
    --------
    >>> from twoscale import Grid
    >>> layout = Grid((8, 9)).partition((2, 2))
    >>> layout.count, layout.patch
    (4, (4, 5))
    >>> layout.extract(torch.zeros(3, 1, 8, 9)).shape
    torch.Size([3, 4, 20])
    """

    axes: tuple[Cuts, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(cuts.size for cuts in self.axes)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Return the number of patches per axis."""
        return tuple(cuts.count for cuts in self.axes)

    @cached_property
    def patch(self) -> tuple[int, ...]:
        """Return the size of the largest patch."""
        return tuple(cuts.side for cuts in self.axes)

    @cached_property
    def count(self) -> int:
        return prod(self.counts)

    @cached_property
    def features(self) -> int:
        return prod(self.patch)

    @cached_property
    def overlaps(self) -> bool:
        return any(cuts.overlaps for cuts in self.axes)

    @cached_property
    def stride(self) -> tuple[int, ...] | None:
        """Return the distance of neighbours if all patches are alike, else None."""
        strides = tuple(cuts.stride for cuts in self.axes if cuts.stride is not None)
        return strides if len(strides) == len(self.axes) else None

    @property
    def rows(self) -> Cuts:
        """Return the intervals of a plane's rows: of a line, a single one."""
        return self.axes[-2] if len(self.axes) > 1 else Cuts(Axis(1), (0,), (1,))

    @property
    def columns(self) -> Cuts:
        return self.axes[-1]

    @property
    def plane(self) -> PatchLayout:
        """Return the same patches of a plane: a line becomes a single row."""
        return PatchLayout((self.rows, self.columns))

    @cached_property
    def seams(self) -> Seams:
        return Seams(tuple(one.seams for one in self.axes), tuple(one.axis for one in self.axes))

    @cached_property
    def inside(self) -> Tensor:
        inside = torch.ones(1, 1, dtype=torch.bool)
        for cuts in self.axes:
            both = inside[:, None, :, None] & cuts.inside[None, :, None, :]
            inside = both.flatten(2).flatten(0, 1)
        return inside

    @cached_property
    def index(self) -> Tensor:
        index = torch.zeros(1, 1, dtype=torch.int64)
        for cuts in self.axes:
            both = index[:, None, :, None] * cuts.size + cuts.positions[None, :, None, :]
            index = both.flatten(2).flatten(0, 1)
        return index

    def extract(self, fields: Tensor) -> Tensor:
        if self.stride is None:
            return super().extract(fields)
        batch, channels = fields.shape[:2]
        count = len(self.axes)
        for k, stride in enumerate(self.stride):
            fields = fields.unfold(2 + k, self.patch[k], stride)
        places, sides = range(2, 2 + count), range(2 + count, 2 + 2 * count)
        apart = fields.permute(0, *places, 1, *sides)
        return apart.reshape(batch, self.count, channels * self.features)

    def assemble(self, parts: Tensor) -> Tensor:
        batch, channels, count = parts.shape[0], parts.shape[2] // self.features, len(self.axes)
        if self.stride is None or (self.overlaps and count > 2):
            return super().assemble(parts)
        if self.overlaps:  # of a line, as patches of a single row
            shape, patch, stride = (
                ((1,) * (2 - count) + one) for one in (self.shape, self.patch, self.stride)
            )
            folded = functional.fold(parts.transpose(1, 2), shape, patch, stride=stride)
            return folded.reshape(batch, channels, *self.shape)
        tiles = parts.reshape(batch, *self.counts, channels, *self.patch)
        order = [axis for k in range(count) for axis in (1 + k, 2 + count + k)]
        return tiles.permute(0, 1 + count, *order).reshape(batch, channels, *self.shape)

    def part(self, patches: slice) -> LayoutPart:
        """Return consecutive patches, with the window of the grid that they lie in."""
        chosen = range(self.count)[patches]
        if len(chosen) == self.count:
            return LayoutPart(tuple(map(slice, self.shape)), self, patches, self.patch)
        first, last = chosen[0], chosen[-1]
        window, axes = [], []
        for k, cuts in enumerate(self.axes):
            across = prod(self.counts[k + 1 :])
            one, other = first // across, last // across
            nodes, kept = cuts.part(slice(one, other + 1))
            window.append(nodes)
            axes.append(kept)
            first, last = first - one * across, last - one * across
            if one != other:  # then all patches along the other axes
                axes += self.axes[k + 1 :]
                window += [slice(0, after.size) for after in self.axes[k + 1 :]]
                break
        inner = slice(first, first + len(chosen))
        return LayoutPart(tuple(window), PatchLayout(tuple(axes)), inner, self.patch)

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
    """Consecutive patches of a layout, and the window of the grid that they lie in.

    `layout` has the patches of this window, and `chosen` says which of them are meant. `patch` is
    the size of the largest patch of the whole layout.
    """

    window: tuple[slice, ...]
    layout: PatchLayout
    chosen: slice
    patch: tuple[int, ...]

    def extract(self, fields: Tensor) -> Tensor:
        """Return the patches of fields (batch, channels, *window) on this part of the grid.

        They are what `PatchLayout.extract` makes of whole fields.
        """
        patches = self.layout.extract(fields)[:, self.chosen]
        missing = [a - b for a, b in zip(self.patch, self.layout.patch, strict=True)]
        if any(missing):
            apart = patches.unflatten(2, (fields.shape[1], *self.layout.patch))
            padding = [side for most in reversed(missing) for side in (0, most)]
            patches = functional.pad(apart, padding).flatten(2)
        return patches


def _uniform(patch: tuple[int, ...]) -> Tensor:
    return torch.ones(patch, dtype=torch.float64)


def _hann(patch: tuple[int, ...]) -> Tensor:
    """Outer product of symmetric Hann windows, floored so that no node is left without weight."""
    axes = (torch.hann_window(side, periodic=False, dtype=torch.float64) for side in patch)
    return reduce(lambda one, axis: one[..., None] * axis, axes).clamp_min(1e-6)


WINDOWS: dict[str, Callable[[tuple[int, ...]], Tensor]] = {"uniform": _uniform, "hann": _hann}
