"""Where fields live, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from torch import Tensor

from twoscale.domain.cuts import Aggregation
from twoscale.domain.grid import Grid
from twoscale.domain.patches import Partition
from twoscale.errors import TwoscaleError


class Domain(Protocol):
    """What every part may ask of the place where fields live."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one channel: (H, W), (L,), (D, H, W), or (nodes,)."""
        ...

    @property
    def nodes(self) -> int:
        """Return the number of values in one channel."""
        ...

    @property
    def weights(self) -> Tensor:
        """Return the quadrature weight of each node; they sum to the measure of the domain."""
        ...

    def edges(self) -> Tensor:
        """Return the pairs of neighbouring nodes (2, edges)."""
        ...

    def partition(self, counts: Sequence[int]) -> Partition:
        """Return the domain cut into parts of about equal measure."""
        ...

    def coarsen(self, cells: Sequence[int]) -> Aggregation:
        """Return the means over cells of about equal measure, and what leads back from them."""
        ...


@dataclass(frozen=True)
class Space:
    """What a batch of fields (samples, channels, *shape) is made of.

    Parameters
    ----------
    domain
        The nodes of every channel.
    channels
        Number of channels, 1 by default; 0 of parameters alone.
    names
        Names of the channels, then of the parameters, all different. None by default: they are then
        numbered.
    parameters
        How many scalars each sample has beside its channels, 0 by default.

    Examples
    --------
    >>> Space(Grid((8, 8)), 2, names=("pressure", "speed")).channel_names
    ('pressure', 'speed')
    """

    domain: Domain
    channels: int = 1
    names: tuple[str, ...] | None = None
    parameters: int = 0

    def __post_init__(self) -> None:
        counts = (self.channels, self.parameters)
        if not all(isinstance(one, int) and not isinstance(one, bool) for one in counts):
            raise TwoscaleError(f"channels and parameters are whole numbers, got {counts}")
        if self.names is not None and not all(isinstance(name, str) for name in self.names):
            raise TwoscaleError(f"names of channels are texts, got {list(self.names)}")
        if min(counts) < 0 or not any(counts):
            raise TwoscaleError(
                f"fields have at least one channel, or parameters beside them, got {counts}"
            )
        if self.names is not None and not len(self.names) == len(set(self.names)) == sum(counts):
            beside = f" and {self.parameters} parameters" if self.parameters else ""
            raise TwoscaleError(
                f"{self.channels} channels{beside} need as many different names, got "
                f"{list(self.names)}"
            )

    @cached_property
    def grid(self) -> Grid:
        """Return the domain of fields on a grid; refuse any other."""
        if not isinstance(self.domain, Grid):
            raise TwoscaleError(f"this works on grids only, and these fields live on {self.domain}")
        return self.domain

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Return (channels, *shape)."""
        return (self.channels, *self.domain.shape)

    @property
    def ones(self) -> tuple[int, ...]:
        """Return a 1 for each axis: one number per channel has the shape (channels, *ones)."""
        return (1,) * len(self.domain.shape)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the channels and of the parameters, or their numbers from zero."""
        return self.names or tuple(map(str, range(self.channels + self.parameters)))

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.labels[: self.channels]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.labels[self.channels :]

    @property
    def contents(self) -> str:
        """Return what samples are made of, in words.

        >>> Space(Grid((12, 12)), 1, parameters=3).contents
        '12x12 fields and 3 parameters'
        """
        count = self.channels
        scalars = f"{self.parameters} parameter{'s' if self.parameters > 1 else ''}"
        fields = f"{count}x{self.domain} fields" if count > 1 else f"{self.domain} fields"
        if not count:
            return scalars
        return f"{fields} and {scalars}" if self.parameters else fields

    def as_dict(self) -> dict[str, Any]:
        """Return the space as plain values, for `from_dict`; there, channels include parameters."""
        height, width = self.grid.shape
        return {
            "height": height,
            "width": width,
            "periodic": list(self.grid.periodic),
            "channels": self.channels + self.parameters,
            "parameters": self.parameters,
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Space:
        names = stored["names"]
        return cls(
            Grid((stored["height"], stored["width"]), periodic=stored["periodic"]),
            stored["channels"] - stored["parameters"],
            None if names is None else tuple(names),
            stored["parameters"],
        )

    def __str__(self) -> str:
        return f"{self.channels}x{self.domain}" if self.channels != 1 else str(self.domain)
