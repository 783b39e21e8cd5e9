"""From vectors of numbers to input fields, and from solution fields to vectors of numbers.

UM-Bridge models map vectors to vectors. Here stands what those vectors mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import Batch
from twoscale.problems import Problem

_KARHUNEN_LOEVE = re.compile(r"kl:(\d+)(?:,width=(\d*\.?\d+(?:e[+-]?\d+)?))?")
_LATTICE = re.compile(r"(\d+)x(\d+)")
_MOST_POINTS = 10**6


class InputMap:
    """Vectors to input fields: the values at all nodes, channel by channel, row by row.

    After the vector of fields comes that of parameters, if there are any.

    Attributes
    ----------
    field_numbers
        The length of the vector that stands for the input fields; 0 without fields.
    meaning
        What the first vector means, in words.
    """

    differentiable = True

    def __init__(self, space: Space) -> None:
        self.space = space
        self.field_numbers = space.channels * space.grid.nodes
        self.meaning = f"the values of {space.contents}, row by row"
        if not self.field_numbers:
            self.meaning = f"{space.parameters} parameters"

    def _fields(self, vector: Tensor) -> Tensor:
        """Return fields (b, C, H, W) of vectors (b, n)."""
        return vector.reshape(-1, self.space.channels, *self.space.grid.shape)

    @property
    def sizes(self) -> list[int]:
        """Return the lengths of the input vectors."""
        return [size for size in (self.field_numbers, self.space.parameters) if size]

    def __call__(self, vectors: Sequence[Tensor]) -> Batch:
        """Return the batch that vectors stand for."""
        first = vectors[0]
        if self.field_numbers:
            fields = self._fields(first)
        else:
            fields = first.new_zeros(first.shape[0], *self.space.shape)
        return Batch.of(fields, vectors[-1] if self.space.parameters else None)


class KarhunenLoeve(InputMap):
    """The input is the coefficients of a Gaussian random field: standard normal numbers.

    level = sum_k coefficient_k mode_k, input = problem.inputs_of(level). The modes are those of
    largest variance. A thresholded problem (Darcy) makes two phases of the level: the map jumps,
    and there are no derivatives. With a `width` the jump is a smooth step, width times the standard
    deviation of the level wide, and there are.

    Parameters
    ----------
    space, problem
        The surrogate's space of inputs, and its equation.
    count
        Number of coefficients.
    width
        Width of the step, 0 by default; for thresholded problems only.
    """

    def __init__(
        self, space: Space, problem: Problem | None, count: int, *, width: float = 0.0
    ) -> None:
        super().__init__(space)
        if problem is None:
            raise TwoscaleError(
                "coefficients of a random field (kl) need a surrogate whose problem is known, such "
                "as poisson or darcy"
            )
        if width and not problem.thresholded:
            raise TwoscaleError(f"{problem.name} has no threshold: leave the width out")
        if not 0 <= width < float("inf"):
            raise TwoscaleError(f"the width must be a number from 0, got {width}")
        self.problem = problem
        self.modes = problem.level_modes(space.grid, count)  # (count, H, W)
        self.width = width
        self.deviation = sqrt(float(self.modes.square().sum(0).mean()))
        self.differentiable = not problem.thresholded or width > 0
        self.field_numbers = len(self.modes)
        step = f", a smooth step of width {width:g}" if width else ""
        self.meaning = (
            f"{len(self.modes)} standard normal coefficients of the random field behind the inputs "
            f"of {problem.name}{step}"
        )

    def _fields(self, vector: Tensor) -> Tensor:
        modes = self.modes.to(vector)
        level = torch.einsum("bk,khw->bhw", vector, modes)
        return self.problem.inputs_of(level, width=self.width * self.deviation)[:, None]


def input_map(text: str | None, space: Space, problem: Problem | None) -> InputMap:
    """Return the map of a text: `fields`, `kl:64` or `kl:64,width=0.3`."""
    if text in (None, "fields"):
        return InputMap(space)
    found = _KARHUNEN_LOEVE.fullmatch(str(text))
    if found is None:
        raise TwoscaleError(f"inputs of a model are fields, kl:64 or kl:64,width=0.3, got '{text}'")
    return KarhunenLoeve(space, problem, int(found[1]), width=float(found[2] or 0))


@dataclass(frozen=True, eq=False)
class Points:
    """Solution fields at points of the unit square, between nodes by bilinear interpolation.

    `coordinates` (P, 2) are rows and columns, from 0 (first node) to 1 (last node; along a periodic
    axis, the first one again). A result has all points of the first channel first.
    """

    coordinates: np.ndarray
    nodes: Tensor  # (P, 4): the nodes around each point, as places in a flat field
    weights: Tensor  # (P, 4)

    @classmethod
    def on(cls, grid: Grid, coordinates: Any) -> Points:
        """Return the points of coordinates (P, 2) on a grid, or say what is wrong with them."""
        points = _checked(coordinates)
        nodes, weights = np.zeros((len(points), 1), np.int64), np.ones((len(points), 1))
        axes = zip(points.T, grid.shape, grid.spacing, grid.periodic, strict=True)
        for at, size, spacing, periodic in axes:
            sides, shares = _neighbours(at, size, spacing, periodic)
            nodes = (nodes[:, :, None] * size + sides[:, None]).reshape(len(points), -1)
            weights = (weights[:, :, None] * shares[:, None]).reshape(len(points), -1)
        return cls(points, torch.from_numpy(nodes), torch.from_numpy(weights))

    def __len__(self) -> int:
        return len(self.coordinates)

    @property
    def key(self) -> bytes:
        """Return what is equal for equal points."""
        return self.coordinates.tobytes()

    def __call__(self, fields: Tensor) -> Tensor:
        """Return the values (b, C P) of fields (b, C, H, W)."""
        around = fields.flatten(2)[:, :, self.nodes.to(fields.device)]
        return (around * self.weights.to(around)).sum(-1).flatten(1)


def points_from(given: str | np.ndarray, grid: Grid) -> Points:
    """Return points from their array (P, 2), or a lattice of inner points by a text as `13x13`."""
    if not isinstance(given, str):
        return Points.on(grid, given)
    found = _LATTICE.fullmatch(given)
    if found is None:
        raise TwoscaleError(f"points are a lattice such as 13x13 or an npy file, got '{given}'")
    return Points.on(grid, lattice(int(found[1]), int(found[2])))


def lattice(rows: int, columns: int) -> np.ndarray:
    """Return the inner points (rows * columns, 2) at i / (rows + 1), j / (columns + 1)."""
    if not 0 < rows * columns <= _MOST_POINTS:
        raise TwoscaleError(f"a lattice has 1 to {_MOST_POINTS} points, got {rows}x{columns}")
    sides = (np.arange(1, count + 1) / (count + 1) for count in (rows, columns))
    return np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, 2)


def _checked(coordinates: Any) -> np.ndarray:
    try:
        points = np.asarray(coordinates, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        points = np.empty(0)
    pairs = points.ndim == 2 and points.shape[1] == 2 and 0 < len(points) <= _MOST_POINTS
    if not pairs or not ((points >= 0) & (points <= 1)).all():
        raise TwoscaleError(
            f"points are 1 to {_MOST_POINTS} pairs (row, column) of numbers from 0 to 1"
        )
    return points


def _neighbours(
    at: np.ndarray, size: int, spacing: float, periodic: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes on both sides of coordinates, (P, 2), and their shares."""
    place = at / spacing if size > 1 else np.zeros_like(at)
    first = np.clip(np.floor(place).astype(np.int64), 0, size - 1 if periodic else max(size - 2, 0))
    share = np.clip(place - first, 0.0, 1.0)
    second = (first + 1) % size if periodic else np.minimum(first + 1, size - 1)
    return np.stack([first, second], 1), np.stack([1 - share, share], 1)
