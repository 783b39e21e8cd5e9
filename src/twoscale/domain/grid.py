"""Grids: uniform nodes along one to three axes; spacing and weights are always read from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from twoscale.domain.cuts import Aggregation, Axis, Cuts
from twoscale.domain.patches import PatchLayout
from twoscale.errors import TwoscaleError

_USUAL = 4  # patches per axis, by default
_AXIS_NAMES = ("depth", "height", "width")


class Plane(NamedTuple):
    """The shape (rows, columns) of images, and which of both axes wrap."""

    shape: tuple[int, int]
    periodic: tuple[bool, bool]


def is_planar(domain: object) -> bool:
    """Say whether a domain is a line or a plane without a mask: what images can show."""
    return isinstance(domain, Grid) and len(domain.axes) < 3 and domain.mask is None


def as_planes(fields: Tensor) -> Tensor:
    """Return fields (batch, channels, *shape) as images: those on a line become a single row."""
    if fields.ndim not in (3, 4):
        raise TwoscaleError(f"this works on lines and planes, got {fields.ndim - 2} dimensions")
    return fields[:, :, None] if fields.ndim == 3 else fields


@dataclass(frozen=True, init=False)
class Grid:
    """Uniform nodes along one to three axes: a line, a plane (rows, columns), or a box.

    Parameters
    ----------
    axes
        The axes in the order of a field's: numbers of nodes, or `Axis` objects.
    mask
        Which nodes hold values, a boolean array of the grid's shape; all by default.
    periodic
        Whether each of the axes wraps, where they are given as numbers; none by default.

    Examples
    --------
    >>> Grid((5, Axis(4, periodic=True))).spacing
    (0.25, 0.25)
    """

    axes: tuple[Axis, ...]
    _mask: bytes | None

    def __init__(
        self,
        axes: Sequence[int | Axis],
        mask: Any = None,
        *,
        periodic: Sequence[bool] | None = None,
    ) -> None:
        if not isinstance(axes, Sequence) or not 1 <= len(axes) <= 3:
            raise TwoscaleError(f"a grid has one to three axes, such as (16, 16), got {axes!r}")
        wraps = (False,) * len(axes) if periodic is None else tuple(periodic)
        if len(wraps) != len(axes):
            raise TwoscaleError(
                f"periodic says of each of {len(axes)} axes whether it wraps, got {wraps}"
            )
        made = tuple(
            axis if isinstance(axis, Axis) else Axis(axis, wrap)
            for axis, wrap in zip(axes, wraps, strict=True)
        )
        object.__setattr__(self, "axes", made)
        object.__setattr__(self, "_mask", None)
        if mask is not None:
            object.__setattr__(self, "_mask", self._checked(mask))

    def _checked(self, mask: Any) -> bytes:
        kept = torch.as_tensor(mask)
        if kept.dtype != torch.bool or kept.shape != self.shape or not bool(kept.any()):
            raise TwoscaleError(
                f"a mask says of each of {self} nodes whether it holds a value, true for some, got "
                f"{kept.dtype} of shape {tuple(kept.shape)}"
            )
        return bytes(kept.flatten().tolist())

    @classmethod
    def square(cls, resolution: int, *, periodic: bool = False) -> Grid:
        """Return the D x D grid, periodic along both axes or along none."""
        return cls((resolution, resolution), periodic=(periodic, periodic))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def periodic(self) -> tuple[bool, ...]:
        return tuple(axis.periodic for axis in self.axes)

    @property
    def spacing(self) -> tuple[float, ...]:
        return tuple(axis.spacing for axis in self.axes)

    @classmethod
    def of_layout(cls, layout: PatchLayout) -> Grid:
        """Return the grid that patches cover."""
        return cls([cuts.axis for cuts in layout.axes])

    @property
    def plane(self) -> Plane:
        """Return the rows and columns, for what works on images: a line is a single row."""
        if not is_planar(self):
            raise TwoscaleError(f"this works on lines and planes without masks, not on {self}")
        rows, columns = ((Axis(1),) * (2 - len(self.axes)) + self.axes)[:2]
        return Plane((rows.size, columns.size), (rows.periodic, columns.periodic))

    @property
    def nodes(self) -> int:
        """Return the number of places in one channel of a field, masked ones included."""
        return prod(self.shape)

    @property
    def mask(self) -> Tensor | None:
        """Return which nodes hold values (shape), or None if all do."""
        if self._mask is None:
            return None
        return torch.tensor(list(self._mask), dtype=torch.bool).reshape(self.shape)

    @property
    def weights(self) -> Tensor:
        """Return the quadrature weights (shape), float64: they sum to the measure of the domain.

        Masked nodes have none.
        """
        weights = reduce(lambda one, axis: one[..., None] * axis, (a.weights for a in self.axes))
        return weights if self.mask is None else torch.where(self.mask, weights, 0.0)

    def edges(self) -> Tensor:
        """Return the pairs of neighbouring nodes (2, edges) that hold values, flat numbers."""
        numbers = torch.arange(self.nodes).reshape(self.shape)
        pairs = []
        for k, axis in enumerate(self.axes):
            after = numbers.roll(-1, k)
            last = axis.size - (0 if axis.periodic and axis.size > 2 else 1)
            pair = torch.stack([numbers.narrow(k, 0, last), after.narrow(k, 0, last)])
            pairs.append(pair.flatten(1))
        edges = torch.cat(pairs, 1)
        if self.mask is None:
            return edges
        return edges[:, self.mask.flatten()[edges].all(0)]

    def partition(
        self, counts: Sequence[int], *, overlap: bool = False, smallest: int = 2
    ) -> PatchLayout:
        """Return `counts` patches per axis side by side; with `overlap` also those in between.

        A line takes the last of the counts. Sides differ by at most one node, and have at least
        `smallest` nodes. On an axis that is too short, four patches or fewer become fewer still;
        more than four are refused.
        """
        return _layout(self.axes, tuple(self._own(counts)), overlap, smallest)

    def common_partition(self, counts: Sequence[int]) -> PatchLayout:
        """Return the patches on whose seams all methods are compared: fewer where nodes are few."""
        own = zip(self._own(counts), self.shape, strict=True)
        return self.partition([min(count, max(size // 2, 1)) for count, size in own])

    def _own(self, counts: Sequence[int]) -> Sequence[int]:
        """Return the last of the counts, or the first one again, as many as there are axes."""
        missing = max(0, len(self.axes) - len(counts))
        return [*counts[:1]] * missing + [*counts[-len(self.axes) :]]

    def coarsen(self, cells: Sequence[int]) -> Aggregation:
        """Return the means over so many cells per axis, and the interpolation between them."""
        return Aggregation([Cuts.equal(*one) for one in zip(self.axes, cells, strict=True)])

    def __repr__(self) -> str:
        axes = [str(axis.size) if axis == Axis(axis.size) else repr(axis) for axis in self.axes]
        mask = "" if self._mask is None else ", mask=..."
        return f"Grid(({', '.join(axes)}{',' if len(axes) == 1 else ''}){mask})"

    def __str__(self) -> str:
        return "x".join(map(str, ("1",) * (2 - len(self.axes)) + self.axes))


@lru_cache(maxsize=64)
def _layout(
    axes: tuple[Axis, ...], counts: tuple[int, ...], overlap: bool, smallest: int
) -> PatchLayout:
    """Return so many patches along each axis; the last one is the width."""
    cut = Cuts.overlapping if overlap else Cuts.equal
    cuts = []
    for name, axis, count in zip(_AXIS_NAMES[-len(axes) :], axes, counts, strict=True):
        most = max(axis.size // smallest, 1)
        if count < 1 or count > max(most, _USUAL):
            raise TwoscaleError(
                f"a {name} of {axis.size} nodes can be cut into 1 to {most} patches, got "
                f"{count}: set patches, as rows and columns"
            )
        cuts.append(cut(axis, min(count, most)))
    return PatchLayout(tuple(cuts))
