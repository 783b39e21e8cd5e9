"""One axis of a grid, how it is cut into intervals of nodes, and the means over such cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.errors import TwoscaleError

_MOST_NODES = 10**6  # per side: a field of more would not fit any memory


@dataclass(frozen=True)
class Axis:
    """Uniform nodes along one direction.

    Along an ordinary axis the nodes include both ends, so the spacing is extent / (nodes - 1).
    Along a periodic axis the last node is followed by the first, and the spacing is extent / nodes.
    An axis of a single node has no differences; its spacing is its extent.

    Parameters
    ----------
    size
        Number of nodes, from 1 to a million.
    periodic
        Whether the last node is followed by the first; not by default.
    extent
        Length of the axis, 1 by default.
    """

    size: int
    periodic: bool = False
    extent: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or isinstance(self.size, bool):
            raise TwoscaleError(f"a grid has whole numbers of nodes per side, got {self.size!r}")
        if not 1 <= self.size <= _MOST_NODES:
            raise TwoscaleError(f"a grid has 1 to {_MOST_NODES} nodes per side, got {self.size}")
        if not isinstance(self.periodic, bool):
            raise TwoscaleError(f"periodic says whether an axis wraps, got {self.periodic!r}")
        if not self.extent > 0:
            raise TwoscaleError(f"the extent of an axis is positive, got {self.extent}")

    @property
    def spacing(self) -> float:
        return self.extent / (self.size if self.periodic else max(self.size - 1, 1))

    @property
    def weights(self) -> Tensor:
        """Return the weights (size,), float64, of the trapezoidal rule: they sum to the extent."""
        weights = torch.full((self.size,), self.spacing, dtype=torch.float64)
        if not self.periodic and self.size > 1:
            weights[[0, -1]] /= 2
        return weights

    def __str__(self) -> str:
        return f"{self.size}{'p' if self.periodic else ''}"


@dataclass(frozen=True)
class Cuts:
    """Intervals of nodes that cover an axis, in the order of their `starts`.

    Along a periodic axis an interval may pass the end and go on at the beginning.
    """

    axis: Axis
    starts: tuple[int, ...]
    sides: tuple[int, ...]

    @classmethod
    @cache
    def equal(cls, axis: Axis, count: int) -> Cuts:
        """Return `count` intervals side by side, whose sides differ by at most one node.

        They are the same from both ends, so that a mirrored field has mirrored patches. Only an odd
        number of nodes in an even number of intervals has no such cuts.

        >>> Cuts.equal(Axis(10), 4).sides, Cuts.equal(Axis(11), 4).sides
        ((3, 2, 2, 3), (3, 2, 3, 3))
        """
        size = axis.size
        first = [(2 * k * size + count) // (2 * count) for k in range((count + 1) // 2)]
        middle = [] if count % 2 else [size // 2]
        edges = [*first, *middle, *(size - edge for edge in reversed(first))]
        sides = tuple(stop - start for start, stop in pairwise(edges))
        return cls(axis, tuple(edges[:-1]), sides)

    @classmethod
    def overlapping(cls, axis: Axis, count: int) -> Cuts:
        """Return intervals as long as those of `count` equal ones, at half their distance.

        There are 2 count - 1 of them, along a periodic axis 2 count. All have one side, the whole
        number next to size / count: longer ones would have more to say with as many codes.

        >>> Cuts.overlapping(Axis(9), 2).starts, Cuts.overlapping(Axis(8, True), 2).starts
        ((0, 2, 5), (0, 2, 4, 6))
        """
        size = axis.size
        side = max(1, (2 * size + count - 1) // (2 * count))
        if axis.periodic:
            starts = tuple(k * size // (2 * count) for k in range(2 * count))
        else:
            steps = max(2 * count - 2, 1)
            starts = tuple(k * (size - side) // steps for k in range(2 * count - 1))
        return cls(axis, starts, (side,) * len(starts))

    def part(self, intervals: slice) -> tuple[slice, Cuts]:
        """Return the nodes that consecutive intervals cover, and these intervals of those nodes.

        If one of them passes the end of the axis, the nodes are all.

        >>> nodes, cuts = Cuts.equal(Axis(10), 4).part(slice(1, 3))
        >>> nodes, cuts.starts, cuts.sides
        (slice(3, 7, None), (0, 2), (2, 2))
        """
        starts, sides = self.starts[intervals], self.sides[intervals]
        first = starts[0]
        stop = max(start + side for start, side in zip(starts, sides, strict=True))
        if stop > self.size:
            return slice(0, self.size), Cuts(self.axis, starts, sides)
        moved = tuple(start - first for start in starts)
        return slice(first, stop), Cuts(Axis(stop - first), moved, sides)

    @cached_property
    def size(self) -> int:
        return self.axis.size

    @cached_property
    def periodic(self) -> bool:
        return self.axis.periodic

    @cached_property
    def count(self) -> int:
        return len(self.starts)

    @cached_property
    def side(self) -> int:
        """Return the longest interval's number of nodes."""
        return max(self.sides)

    @cached_property
    def stride(self) -> int | None:
        """Return the distance of neighbours if all are alike and none passes the end, else None."""
        strides = {after - start for start, after in pairwise(self.starts)}
        alike = len(set(self.sides)) == 1 and len(strides) <= 1
        if not alike or self.starts[-1] + self.sides[-1] != self.size:
            return None
        return strides.pop() if strides else self.side

    @cached_property
    def overlaps(self) -> bool:
        return sum(self.sides) != self.size

    @cached_property
    def positions(self) -> Tensor:
        """Return the node indices (count, side); shorter intervals repeat their last node."""
        starts, sides = torch.tensor(self.starts), torch.tensor(self.sides)
        offsets = torch.minimum(torch.arange(self.side), sides[:, None] - 1)
        return (starts[:, None] + offsets) % self.size

    @cached_property
    def inside(self) -> Tensor:
        """Say of each place (count, side) whether it is a node of the interval."""
        return torch.arange(self.side) < torch.tensor(self.sides)[:, None]

    @cached_property
    def seams(self) -> tuple[int, ...]:
        """Return the nodes at which an interval starts, or before which one stops.

        Along an ordinary axis its two ends are none; along a periodic one node 0 is a seam if an
        interval ends there.
        """
        edges = set(self.starts)
        edges |= {start + side for start, side in zip(self.starts, self.sides, strict=True)}
        if self.periodic:
            return tuple(sorted({edge % self.size for edge in edges})) if self.size > 1 else ()
        return tuple(sorted(edge for edge in edges if 0 < edge < self.size))


_POOLS = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}
_MODES = {1: "linear", 2: "bilinear", 3: "trilinear"}


class Aggregation(nn.Module):
    """Restriction of fields to the means over cells, and prolongation from them.

    Cells are as equal as whole nodes allow: their sides differ by at most one node. Prolongation
    interpolates between the cells' centres, is constant beyond the outermost ones, and wraps along
    periodic axes.

    Parameters
    ----------
    axes
        The cells along each axis of the grid.

    Examples
    --------
    >>> from twoscale import Grid
    >>> Grid((8, 9)).coarsen((2, 3)).restrict(torch.zeros(5, 1, 8, 9)).shape
    torch.Size([5, 1, 2, 3])
    """

    def __init__(self, axes: Sequence[Cuts]) -> None:
        super().__init__()
        self.fine = tuple(cuts.size for cuts in axes)
        self.shape = tuple(cuts.count for cuts in axes)
        sides = {0 if cuts.periodic else side for cuts in axes for side in cuts.sides}
        self._side = sides.pop() if len(sides) == 1 else 0  # of all cells alike: a faster way
        for k, cuts in enumerate(axes):
            for name, matrix in (("means", _means(cuts)), ("between", _interpolation(cuts))):
                self.register_buffer(f"{name}{k}", matrix.float(), persistent=False)

    def restrict(self, fields: Tensor) -> Tensor:
        """Return the means (..., *cells) of fields (batch, channels, *shape)."""
        if self._side:
            return _POOLS[len(self.shape)](fields, self._side)
        values = fields.to(self.get_buffer("means0").dtype)
        return self._along_axes(values, "means")

    def prolong(self, means: Tensor) -> Tensor:
        """Return the fields (batch, channels, *shape) of means over cells."""
        if self._side:
            mode = _MODES[len(self.shape)]
            return functional.interpolate(means, self.fine, mode=mode, align_corners=False)
        return self._along_axes(means, "between")

    @property
    def matrices(self) -> list[tuple[Tensor, Tensor]]:
        """Return the matrices of restriction (cells, nodes) and prolongation of each axis."""
        return [
            (self.get_buffer(f"means{k}"), self.get_buffer(f"between{k}"))
            for k in range(len(self.shape))
        ]

    def _along_axes(self, values: Tensor, name: str) -> Tensor:
        last = len(self.shape) - 1
        for k in range(last):
            moved = values.movedim(2 + k, -2)
            values = (self.get_buffer(f"{name}{k}") @ moved).movedim(-2, 2 + k)
        return values @ self.get_buffer(f"{name}{last}").mT


def _means(cells: Cuts) -> Tensor:
    """Return the matrix (cells, nodes) that takes values to their means over cells, float64."""
    means = torch.zeros(cells.count, cells.size, dtype=torch.float64)
    for cell, (start, side) in enumerate(zip(cells.starts, cells.sides, strict=True)):
        means[cell, start : start + side] = 1 / side
    return means


def _interpolation(cells: Cuts) -> Tensor:
    """Return the matrix (nodes, cells) that interpolates between the cells' centres, float64."""
    starts, sides = (torch.tensor(one, dtype=torch.float64) for one in (cells.starts, cells.sides))
    centres = starts + (sides - 1) / 2
    nodes = torch.arange(cells.size, dtype=torch.float64)
    after = torch.searchsorted(centres, nodes, right=True)  # the first centre beyond a node
    before = after - 1
    wrapped = before.remainder(cells.count), after.remainder(cells.count)
    if not cells.periodic:
        wrapped = before.clamp_min(0), after.clamp_max(cells.count - 1)
    first, second = wrapped
    distance = (centres[second] - centres[first]).remainder(cells.size)
    share = torch.where(
        distance > 0, (nodes - centres[first]).remainder(cells.size) / distance, 0.0
    )
    matrix = torch.zeros(cells.size, cells.count, dtype=torch.float64)
    rows = torch.arange(cells.size)
    matrix.index_put_((rows, first), 1 - share, accumulate=True)
    return matrix.index_put_((rows, second), share, accumulate=True)
