"""Grids, and what fields on them are made of; spacing is always read from here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from twoscale.errors import TwoscaleError

_MOST_NODES = 10**6  # per side: a field of more would not fit any memory


@dataclass(frozen=True)
class Grid:
    """Uniform nodes of the unit square: `height` rows by `width` columns.

    Along an ordinary axis the nodes include both ends, so the spacing is 1 / (nodes - 1). Along a
    periodic axis the last node is followed by the first, and the spacing is 1 / nodes. An axis of a
    single node has no differences; its spacing is 1.

    Parameters
    ----------
    height, width
        Number of rows and of columns, from 1 to a million each.
    periodic
        Whether the last row is followed by the first, and the last column by the first; (False,
        False) by default.

    Examples
    --------
    >>> Grid(5, 4, periodic=(False, True)).spacing
    (0.25, 0.25)
    """

    height: int
    width: int
    periodic: tuple[bool, bool] = (False, False)

    def __post_init__(self) -> None:
        if not all(isinstance(side, int) and not isinstance(side, bool) for side in self.shape):
            raise TwoscaleError(f"a grid has whole numbers of nodes per side, got {self.shape}")
        if min(self.shape) < 1 or max(self.shape) > _MOST_NODES:
            raise TwoscaleError(
                f"a grid has 1 to {_MOST_NODES} nodes per side, got {self.height}x{self.width}"
            )
        if len(self.periodic) != 2 or not all(isinstance(one, bool) for one in self.periodic):
            raise TwoscaleError(
                f"periodic says of rows and columns whether they wrap, got {self.periodic}"
            )

    @classmethod
    def square(cls, resolution: int, *, periodic: bool = False) -> Grid:
        """Return the D x D grid, periodic along both axes or along none."""
        return cls(resolution, resolution, (periodic, periodic))

    @cached_property
    def shape(self) -> tuple[int, int]:
        return (self.height, self.width)

    @property
    def nodes(self) -> int:
        return prod(self.shape)

    @property
    def spacing(self) -> tuple[float, float]:
        """Return (row spacing, column spacing)."""
        rows, columns = (
            1.0 / size if periodic else 1.0 / max(size - 1, 1)
            for size, periodic in zip(self.shape, self.periodic, strict=True)
        )
        return rows, columns

    def __str__(self) -> str:
        sides = zip(self.shape, self.periodic, strict=True)
        return "x".join(f"{size}{'p' if periodic else ''}" for size, periodic in sides)


@dataclass(frozen=True)
class Space:
    """What a batch of fields (samples, channels, height, width) is made of.

    Parameters
    ----------
    channels
        Number of channels, at least 1, parameters included.
    grid
        The nodes of every channel.
    parameters
        How many of the channels, the last ones, are scalars: the same number at every node. 0 by
        default.
    names
        Names of the channels, one each and all different. None by default: they are then numbered.

    Examples
    --------
    >>> Space(2, Grid(8, 8), names=("pressure", "speed")).channel_names
    ('pressure', 'speed')
    """

    channels: int
    grid: Grid
    parameters: int = 0
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        counts = (self.channels, self.parameters)
        if not all(isinstance(one, int) and not isinstance(one, bool) for one in counts):
            raise TwoscaleError(f"channels and parameters are whole numbers, got {counts}")
        if self.names is not None and not all(isinstance(name, str) for name in self.names):
            raise TwoscaleError(f"names of channels are texts, got {list(self.names)}")
        if not 0 <= self.parameters <= self.channels or self.channels < 1:
            raise TwoscaleError(
                f"fields have at least one channel, got {self.channels} with "
                f"{self.parameters} parameters among them"
            )
        if self.names is not None and (
            len(self.names) != self.channels or len(set(self.names)) != self.channels
        ):
            raise TwoscaleError(
                f"{self.channels} channels need as many different names, got {list(self.names)}"
            )

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Return (channels, height, width)."""
        return (self.channels, *self.grid.shape)

    @property
    def field_channels(self) -> int:
        """Return the number of channels that vary over the grid."""
        return self.channels - self.parameters

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Return the channels' names, or their numbers from zero."""
        return self.names or tuple(str(channel) for channel in range(self.channels))

    @property
    def contents(self) -> str:
        """Return what samples are made of, in words.

        >>> Space(4, Grid(12, 12), parameters=3).contents
        '12x12 fields and 3 parameters'
        """
        count = self.field_channels
        scalars = f"{self.parameters} parameter{'s' if self.parameters > 1 else ''}"
        fields = f"{count}x{self.grid} fields" if count > 1 else f"{self.grid} fields"
        if not count:
            return scalars
        return f"{fields} and {scalars}" if self.parameters else fields

    def as_dict(self) -> dict[str, Any]:
        """Return the space as plain values, for `from_dict`."""
        return {
            "height": self.grid.height,
            "width": self.grid.width,
            "periodic": list(self.grid.periodic),
            "channels": self.channels,
            "parameters": self.parameters,
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Space:
        rows, columns = stored["periodic"]
        names = stored["names"]
        return cls(
            stored["channels"],
            Grid(stored["height"], stored["width"], (rows, columns)),
            stored["parameters"],
            None if names is None else tuple(names),
        )

    def __str__(self) -> str:
        return f"{self.channels}x{self.grid}" if self.channels > 1 else str(self.grid)
