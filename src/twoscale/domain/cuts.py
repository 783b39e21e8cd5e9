"""One axis of a grid, cut into intervals of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError


@dataclass(frozen=True)
class Cuts:
    """Intervals of nodes that cover an axis of `size` nodes, in the order of their `starts`.

    Along a `periodic` axis an interval may pass the end and go on at the beginning.
    """

    size: int
    starts: tuple[int, ...]
    sides: tuple[int, ...]
    periodic: bool = False

    @classmethod
    def equal(cls, size: int, count: int, *, periodic: bool = False) -> Cuts:
        """Return `count` intervals side by side, whose sides differ by at most one node.

        They are the same from both ends, so that a mirrored field has mirrored patches. Only an odd
        number of nodes in an even number of intervals has no such cuts.

        >>> Cuts.equal(10, 4).sides, Cuts.equal(11, 4).sides
        ((3, 2, 2, 3), (3, 2, 3, 3))
        """
        first = [(2 * k * size + count) // (2 * count) for k in range((count + 1) // 2)]
        middle = [] if count % 2 else [size // 2]
        edges = [*first, *middle, *(size - edge for edge in reversed(first))]
        sides = tuple(stop - start for start, stop in pairwise(edges))
        return cls(size, tuple(edges[:-1]), sides, periodic)

    @classmethod
    def overlapping(cls, size: int, count: int, *, periodic: bool = False) -> Cuts:
        """Return intervals as long as those of `count` equal ones, at half their distance.

        There are 2 count - 1 of them, along a periodic axis 2 count. All have one side, the whole
        number next to size / count: longer ones would have more to say with as many codes.

        >>> Cuts.overlapping(9, 2).starts, Cuts.overlapping(8, 2, periodic=True).starts
        ((0, 2, 5), (0, 2, 4, 6))
        """
        side = max(1, (2 * size + count - 1) // (2 * count))
        if periodic:
            starts = tuple(k * size // (2 * count) for k in range(2 * count))
        else:
            steps = max(2 * count - 2, 1)
            starts = tuple(k * (size - side) // steps for k in range(2 * count - 1))
        return cls(size, starts, (side,) * len(starts), periodic)

    @classmethod
    def strided(cls, size: int, side: int, stride: int) -> Cuts:
        """Return intervals of one side at a fixed stride that cover the axis exactly."""
        if not 1 <= stride <= side <= size or (size - side) % stride:
            raise TwoscaleError(
                f"patches of side {side} at stride {stride} do not cover {size} nodes: "
                "the stride must be at most the side and divide (size - side)"
            )
        starts = tuple(range(0, size - side + 1, stride))
        return cls(size, starts, (side,) * len(starts))

    def part(self, intervals: slice) -> tuple[slice, Cuts]:
        """Return the nodes that consecutive intervals cover, and these intervals of those nodes.

        If one of them passes the end of the axis, the nodes are all.

        >>> Cuts.equal(10, 4).part(slice(1, 3))
        (slice(3, 7, None), Cuts(size=4, starts=(0, 2), sides=(2, 2), periodic=False))
        """
        starts, sides = self.starts[intervals], self.sides[intervals]
        first = starts[0]
        stop = max(start + side for start, side in zip(starts, sides, strict=True))
        if stop > self.size:
            return slice(0, self.size), Cuts(self.size, starts, sides, self.periodic)
        moved = tuple(start - first for start in starts)
        return slice(first, stop), Cuts(stop - first, moved, sides)

    @property
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
