"""The symmetries of a square, a rectangle and a periodic grid, as exact maps of fields.

A problem has a symmetry when the solution of a turned or mirrored input is the turned or mirrored
solution. Then every pair of fields is as many pairs as there are symmetries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError


@dataclass(frozen=True)
class Symmetry:
    """Some quarter turns, then a mirroring of the columns or none, of fields (..., rows, columns).

    Or a `shift` along periodic axes, as shares of the rows' and columns' periods. Values are moved,
    never changed.
    """

    turns: int = 0
    mirrored: bool = False
    shift: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))

    def __call__(self, fields: Tensor) -> Tensor:
        if any(self.shift):
            sizes = fields.shape[-2:]
            steps = [int(share * size) for share, size in zip(self.shift, sizes, strict=True)]
            return fields.roll(steps, dims=(-2, -1))
        turned = torch.rot90(fields, self.turns, dims=(-2, -1)) if self.turns else fields
        return turned.flip(-1) if self.mirrored else turned

    def after(self, first: Symmetry) -> Symmetry:
        """Return the turn or mirroring that acts as `first`, then this one."""
        # A mirrored field turns the other way round: m r = r^-1 m.
        turns = first.turns + (-self.turns if first.mirrored else self.turns)
        return Symmetry(turns % 4, self.mirrored != first.mirrored)

    @property
    def inverse(self) -> Symmetry:
        if any(self.shift):
            rows, columns = (-share % 1 for share in self.shift)
            return Symmetry(shift=(rows, columns))
        return self if self.mirrored else Symmetry(-self.turns % 4)

    @property
    def swaps_axes(self) -> bool:
        return self.turns % 2 == 1


Group = tuple[Symmetry, ...]
"""Symmetries, the identity first. Turns and mirrorings contain, with any two, their product."""

IDENTITY: Group = (Symmetry(),)
SQUARE: Group = tuple(Symmetry(k, mirrored) for mirrored in (False, True) for k in range(4))
MIRRORS: Group = tuple(g for g in SQUARE if not g.swaps_axes)
MIRROR_ROWS: Group = (Symmetry(), Symmetry(2, mirrored=True))
ROTATIONS: Group = tuple(g for g in SQUARE if not g.mirrored)
TRANSPOSE: Group = (Symmetry(), Symmetry(3, mirrored=True))

_TURNS: dict[str, Group] = {
    "none": IDENTITY,
    "mirror-rows": MIRROR_ROWS,
    "mirror-columns": (Symmetry(), Symmetry(mirrored=True)),
    "half-turn": (Symmetry(), Symmetry(2)),
    "transpose": TRANSPOSE,
    "mirrors": MIRRORS,
    "rotations": ROTATIONS,
    "square": SQUARE,
}

SYMMETRIES = {
    "none": "nothing",
    "mirror-rows": "mirroring of the rows",
    "mirror-columns": "mirroring of the columns",
    "half-turn": "half turns",
    "transpose": "transposition",
    "mirrors": "mirroring",
    "rotations": "quarter turns",
    "square": "mirroring and quarter turns",
    "shifts": "shifts along the periodic axes",
}
"""Their names, each with the words for what they do. Mirrored rows are in reverse order."""

_SHIFTS = 16
_STRIDES = (0.7548776662466927, 0.5698402909980532)  # multiples of them fill a square evenly


def symmetry_group(name: str, *grids: Grid) -> Group:
    """Return the symmetries called `name` that map each of some grids onto itself.

    Of the shifts it is up to 16, spread evenly over the periods.
    """
    if name == "shifts":
        return _shifts(grids)
    if name not in _TURNS:
        raise TwoscaleError(f"no symmetries are called '{name}': known are {', '.join(SYMMETRIES)}")
    turns = all(len(set(grid.shape)) == 1 and len(set(grid.periodic)) == 1 for grid in grids)
    group = tuple(g for g in _TURNS[name] if turns or not g.swaps_axes)
    if group == IDENTITY and name != "none":
        raise TwoscaleError(
            f"symmetries={name} needs grids with as many rows as columns, got "
            f"{' and '.join(map(str, grids))}: leave the symmetries out"
        )
    return group


def _shifts(grids: Sequence[Grid]) -> Group:
    """Return shifts by whole nodes of all grids, the identity first."""
    steps = [
        math.gcd(*(grid.shape[axis] for grid in grids))
        if all(grid.periodic[axis] for grid in grids)
        else 1
        for axis in (0, 1)
    ]
    wraps = any(all(grid.periodic[axis] for grid in grids) for axis in (0, 1))
    if max(steps) <= 1 and wraps and grids:
        raise TwoscaleError(
            "no shift is a whole number of nodes on the inputs' and on the outputs' grid, whose "
            "sides have no common divisor: leave symmetries=shifts out"
        )
    if max(steps) <= 1:
        raise TwoscaleError(
            "symmetries=shifts needs an axis along which inputs and outputs are periodic: "
            "say which axes are (periodic), or leave the symmetries out"
        )
    found: dict[tuple[Fraction, Fraction], None] = {}
    for k in range(_SHIFTS):
        rows, columns = (
            Fraction(int(k * stride % 1 * count), count)
            for stride, count in zip(_STRIDES, steps, strict=True)
        )
        found[rows, columns] = None
    return tuple(Symmetry(shift=shift) for shift in found)


def is_closed(group: Group) -> bool:
    """Say whether a group contains the product of any two of its symmetries, as turns do."""
    return not any(any(symmetry.shift) for symmetry in group)


def products(group: Group) -> list[list[int]]:
    """Return the group's table: place [a][b] names the symmetry that acts as b, then as a."""
    return [[group.index(a.after(b)) for b in group] for a in group]


def irreducible(group: Group) -> list[Tensor]:
    """Return the irreducible representations of a group, each (symmetries, d, d) and orthogonal.

    R(a after b) = R(a) R(b). The functions sqrt(d / |group|) R(g)[i, j] of all of them together are
    an orthonormal basis of the functions on the group: the group's Fourier transform. Of the turns
    of the plane by quarters alone, whose second row has the functions of the first, it is one row.
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
