"""The symmetries of a square and of a rectangle, as exact maps of fields.

A problem has a symmetry when the solution of a turned or mirrored input is the turned or mirrored
solution. Then every pair of fields is as many pairs as there are symmetries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource


@dataclass(frozen=True)
class Symmetry:
    """Some quarter turns, then a mirroring of the columns or none, of fields (..., rows, columns).

    Values are moved, never changed.
    """

    turns: int = 0
    mirrored: bool = False

    def __call__(self, fields: Tensor) -> Tensor:
        turned = torch.rot90(fields, self.turns, dims=(-2, -1)) if self.turns else fields
        return turned.flip(-1) if self.mirrored else turned

    def after(self, first: Symmetry) -> Symmetry:
        """Return the symmetry that acts as `first`, then this one."""
        # A mirrored field turns the other way round: m r = r^-1 m.
        turns = first.turns + (-self.turns if first.mirrored else self.turns)
        return Symmetry(turns % 4, self.mirrored != first.mirrored)

    @property
    def inverse(self) -> Symmetry:
        return self if self.mirrored else Symmetry(-self.turns % 4)

    @property
    def swaps_axes(self) -> bool:
        return self.turns % 2 == 1


Group = tuple[Symmetry, ...]
"""Symmetries that contain, with any two, the one after the other; the identity comes first."""

IDENTITY: Group = (Symmetry(),)
SQUARE: Group = tuple(Symmetry(k, mirrored) for mirrored in (False, True) for k in range(4))
MIRRORS: Group = tuple(g for g in SQUARE if not g.swaps_axes)

GROUPS: dict[str, Group] = {"none": IDENTITY, "mirrors": MIRRORS, "square": SQUARE}
"""By name: the eight of the square, the four that keep rows and columns apart, the identity."""


def symmetry_group(name: str, shape: tuple[int, int]) -> Group:
    """Return the symmetries called `name` that map a grid of this shape onto itself."""
    if name not in GROUPS:
        raise TwoscaleError(f"no symmetries are called '{name}': known are {', '.join(GROUPS)}")
    height, width = shape
    return tuple(g for g in GROUPS[name] if height == width or not g.swaps_axes)


def products(group: Group) -> list[list[int]]:
    """Return the group's table: place [a][b] names the symmetry that acts as b, then as a."""
    return [[group.index(a.after(b)) for b in group] for a in group]


def irreducible(group: Group) -> list[Tensor]:
    """Return the irreducible representations of a group, each (symmetries, d, d) and orthogonal.

    R(a after b) = R(a) R(b). The functions sqrt(d / |group|) R(g)[i, j] of all of them together are
    an orthonormal basis of the functions on the group: the group's Fourier transform.
    """
    step = 1 if any(g.swaps_axes for g in group) else 2
    signs = [
        [float(turn ** (g.turns // step) * mirror**g.mirrored) for g in group]
        for turn in (1, -1)
        for mirror in (1, -1)
    ]
    distinct = [sign for place, sign in enumerate(signs) if sign not in signs[:place]]
    found = [torch.tensor(sign, dtype=torch.float64).reshape(-1, 1, 1) for sign in distinct]
    if len(found) < len(group):
        found.append(torch.stack([_turning_of_the_plane(g) for g in group]))
    return found


def _turning_of_the_plane(symmetry: Symmetry) -> Tensor:
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    mirror = torch.tensor([[1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    turned = torch.linalg.matrix_power(quarter, symmetry.turns)
    return mirror @ turned if symmetry.mirrored else turned


class ImageSource:
    """All images of another source's fields under some symmetries; made anew on each pass."""

    def __init__(self, source: FieldSource, group: Group) -> None:
        self.source = source
        self.group = group

    @property
    def shape(self) -> tuple[int, int, int]:
        samples, height, width = self.source.shape
        return len(self.group) * samples, height, width

    def chunks(self) -> Iterator[Tensor]:
        for chunk in self.source.chunks():
            for symmetry in self.group:
                yield symmetry(chunk)

    def to(self, device: torch.device) -> ImageSource:
        return ImageSource(self.source.to(device), self.group)
