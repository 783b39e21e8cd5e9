"""The uniform grid that fields live on; spacing is always read from here."""

from __future__ import annotations

from dataclasses import dataclass

from twoscale.errors import TwoscaleError

_MOST_NODES = 10**6  # per side: a field of more would not fit any memory


@dataclass(frozen=True)
class Grid:
    """Nodes of the unit square, boundary included: `height` rows by `width` columns.

    Fields are `(batch, height, width)`. Spacing is `1 / (nodes - 1)` along each axis.
    """

    height: int
    width: int

    def __post_init__(self) -> None:
        sides = (self.height, self.width)
        if not all(isinstance(side, int) and not isinstance(side, bool) for side in sides):
            raise TwoscaleError(f"a grid has whole numbers of nodes per side, got {sides}")
        if max(sides) > _MOST_NODES:
            raise TwoscaleError(
                f"a grid has at most {_MOST_NODES} nodes per side, got {max(sides)}"
            )
        if min(self.height, self.width) < 8:
            raise TwoscaleError(
                f"a grid needs at least 8 nodes per side, got {self.height}x{self.width}"
            )

    @classmethod
    def square(cls, resolution: int) -> Grid:
        """Return the D x D grid."""
        return cls(resolution, resolution)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.height, self.width)

    @property
    def spacing(self) -> tuple[float, float]:
        """Return (row spacing, column spacing)."""
        return (1.0 / (self.height - 1), 1.0 / (self.width - 1))

    def __str__(self) -> str:
        return f"{self.height}x{self.width}"
