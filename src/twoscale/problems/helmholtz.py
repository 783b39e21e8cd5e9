"""Waves of one frequency in a random medium, driven from one side.

They are solved for by bilinear finite elements on the cells of a grid, with a reaction that varies
inside cells. The matrices are symmetric and couple each node with its eight neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.problems.base import Problem, in_parts
from twoscale.problems.parameters import check_positive
from twoscale.problems.random_field import standard_normals

_SHIFT = 9.0  # of the eigenvalues of the medium's covariance
_DRIVEN = 0.15  # half the width of the driven part of the side y = 1
_SOLVE_VALUES = 2**24  # of the factors held together while systems are solved
_SOLVE_VALUES_CUDA = 2**30
_POINTS = (0.5 - math.sqrt(0.15), 0.5, 0.5 + math.sqrt(0.15))  # Gauss points of a cell's side
_WEIGHTS = (5 / 18, 8 / 18, 5 / 18)
# One side of a cell has three entries: first end with itself, first with last, last with itself.
_MASS, _STIFFNESS = (1 / 3, 1 / 6, 1 / 3), (1.0, -1.0, 1.0)


@dataclass(frozen=True)
class Helmholtz(Problem):
    """-Laplace(u) - (omega / c)^2 u = 0 on the unit square; from the wave speed c to u.

    du/dn is 0 on all sides but y = 1. There it is 1 at the nodes with |x - 0.5| < 0.15, 0 at the
    others, and linear in between. Rows are x, columns are y. The wave speed is
    c = speed + tanh(sum of theta_ij phi_ij / (pi^2 (i^2 + j^2) + 9)) over the pairs (i, j) of least
    i^2 + j^2, (0, 0) left out, with standard normal theta. phi is 2 cos(pi i x) cos(pi j y), and
    sqrt(2) times the cosine where i or j is 0. This is the benchmark of de Hoop, Huang, Qian and
    Stuart (2022).

    Parameters
    ----------
    frequency
        omega, 1000 by default.
    speed
        Mean wave speed, above 1; 20 by default.
    modes
        Number of pairs (i, j), 100 by default.

    Examples
    --------
    >>> problem = Helmholtz(frequency=100.0)
    >>> speed = problem.sample(problem.grid(16, 16), [0, 1], seed=0)
    >>> bool(problem.residual(speed, problem.solve(speed)).abs().max() < 1e-8)
    True
    """

    frequency: float = 1000.0
    speed: float = 20.0
    modes: int = 100

    name: ClassVar[str] = "helmholtz"
    number: ClassVar[int] = 4
    boundary: ClassVar[str] = "du/dn = 1 on the middle of the side y = 1 (last column), else 0"
    fewest_nodes: ClassVar[int] = 3
    resolution: ClassVar[int] = 101
    symmetric_under: ClassVar[str] = "mirror-rows"
    solver: ClassVar[str] = (
        "bilinear finite elements, 3 x 3 Gauss points, c between nodes by its cosine series, "
        "block elimination, float64"
    )

    def __post_init__(self) -> None:
        check_positive(self)
        if self.speed <= 1:
            raise TwoscaleError(f"speed must be above 1, got {self.speed}")

    @property
    def distribution(self) -> dict[str, Any]:
        kind = "tanh of a sum of cosines with normal coefficients"
        return {"kind": kind, "speed": self.speed, "modes": self.modes, "shift": _SHIFT}

    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        self.check_grid(grid)
        normals = standard_normals((self.modes,), indices, entropy=self.entropy(grid, seed))
        return self.wave_speed(torch.from_numpy(normals).to(device), grid)

    def wave_speed(self, coefficients: Tensor, grid: Grid) -> Tensor:
        """Return c (batch, height, width) of the coefficients theta (batch, modes)."""
        pairs = torch.tensor(wave_numbers(self.modes))
        first, second = pairs.unbind(1)
        size = torch.where(pairs.amin(1) > 0, 2.0, math.sqrt(2.0)).double()
        scale = size / (math.pi**2 * pairs.square().sum(1) + _SHIFT)
        order = int(pairs.max()) + 1
        spectrum = coefficients.new_zeros(len(coefficients), order, order)
        spectrum[:, first, second] = coefficients * scale.to(coefficients.device)
        rows, columns = (
            cosines(torch.linspace(0, 1, size, dtype=torch.float64), order).to(spectrum.device)
            for size in grid.shape
        )
        return self.speed + torch.tanh(rows @ spectrum @ columns.T)

    def solve(self, inputs: Tensor) -> Tensor:
        grid = self.grid(*inputs.shape[-2:])
        if not bool(((inputs > 0) & inputs.isfinite()).all()):
            raise TwoscaleError(
                "Helmholtz needs a wave speed that is positive everywhere, and finite"
            )
        load = right_side(grid, inputs.device)
        return in_parts(
            lambda part: self._stencil(part).solve(load.expand_as(part)),
            inputs.double().reshape(-1, *grid.shape),
            values=grid.shape[0] ** 2 * grid.shape[1],
            cpu=_SOLVE_VALUES,
            cuda=_SOLVE_VALUES_CUDA,
        ).reshape(inputs.shape)

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return (A u - b) / (area of a cell) at all nodes."""
        grid = Grid(inputs.shape[-2:])
        load = right_side(grid, inputs.device).to(inputs.dtype)
        return (self._stencil(inputs).apply(outputs) - load) / math.prod(grid.spacing)

    def _stencil(self, speeds: Tensor) -> Stencil:
        """Return the matrices A of wave speeds (..., height, width)."""
        rows, columns = (
            gauss_values(size, speeds.device).to(speeds.dtype) for size in speeds.shape[-2:]
        )
        reaction = (self.frequency / (rows @ speeds @ columns.T)).square()
        return reaction_stencil(reaction, Grid(speeds.shape[-2:]))


@lru_cache(maxsize=8)
def right_side(grid: Grid, device: torch.device) -> Tensor:
    """Return the right side b (height, width), float64."""
    x = torch.linspace(0, 1, grid.shape[0], dtype=torch.float64)
    driven = ((x - 0.5).abs() < _DRIVEN - 1e-9).double()  # x = 0.35 is not below 0.15
    load = torch.zeros(grid.shape, dtype=torch.float64)
    load[:, -1] = side_load(driven)
    return load.to(device)


def wave_numbers(modes: int) -> list[tuple[int, int]]:
    """Return the pairs (i, j) of least i^2 + j^2 but (0, 0); ties in the order of i, then of j."""
    numbers = range(math.isqrt(2 * modes) + 2)  # the quarter of a disc that holds them is smaller
    near = [(i, j) for i in numbers for j in numbers if (i, j) != (0, 0)]
    return sorted(near, key=lambda pair: (pair[0] ** 2 + pair[1] ** 2, pair))[:modes]


@dataclass(frozen=True)
class Stencil:
    """Symmetric matrices (..., nodes, nodes) that couple a node with itself and its neighbours.

    The entry of two nodes is stored once.
    """

    centre: Tensor  # (..., height, width): of a node with itself
    down: Tensor  # (..., height - 1, width): with the node of the next row
    right: Tensor  # (..., height, width - 1): with the node of the next column
    across: Tensor  # (..., height - 1, width - 1): the same for both diagonals of a cell

    def apply(self, fields: Tensor) -> Tensor:
        """Return the product with fields (..., height, width)."""
        above, below = fields[..., :-1, :], fields[..., 1:, :]
        from_below = self.down * below + _beside(self.across, below)
        from_above = self.down * above + _beside(self.across, above)
        own = self.centre * fields + _beside(self.right, fields)
        return own + _onto_nodes(from_below, from_above, -2)

    def solve(self, right_side: Tensor) -> Tensor:
        """Return the fields whose products are `right_side`, both (batch, height, width).

        The nodes of a column are a block.
        """
        own = zip(self.centre.unbind(-1), self.down.unbind(-1), strict=True)
        next_to = zip(self.right.unbind(-1), self.across.unbind(-1), strict=True)
        return solve_block_tridiagonal(
            (tridiagonal(*bands) for bands in own),
            (tridiagonal(*bands) for bands in next_to),
            right_side.mT,
        ).mT


def reaction_stencil(reaction: Tensor, grid: Grid) -> Stencil:
    """Return the matrices of -Laplace(u) - q u, du/dn = 0, for q at the Gauss points of all cells.

    `reaction` is (..., 3 (height - 1), 3 (width - 1)). The entry of basis functions v and w is the
    integral of grad(v) . grad(w) - q v w.
    """
    rows, columns = grid.spacing
    points, weights, mass, stiffness = (
        torch.tensor(one, dtype=reaction.dtype, device=reaction.device)
        for one in (_POINTS, _WEIGHTS, _MASS, _STIFFNESS)
    )
    products = weights * torch.stack([(1 - points) ** 2, points * (1 - points), points**2])
    stiff = columns / rows * torch.outer(stiffness, mass)
    stiff = stiff + rows / columns * torch.outer(mass, stiffness)
    at_points = reaction.unflatten(-1, (-1, 3)).unflatten(-3, (-1, 3))  # (..., cell, 3, cell, 3)
    moments = torch.einsum("...ipjq,sp,tq->st...ij", at_points, products, products)
    return _assembled(stiff.reshape(3, 3, *[1] * reaction.ndim) - rows * columns * moments)


def side_load(values: Tensor) -> Tensor:
    """Return the integrals of a side's flux times its hat functions, from its values at the nodes.

    The flux is linear between nodes; both are (nodes,), and the side has length 1.
    """
    first, last = values[:-1], values[1:]
    spacing = 1 / len(first)
    return spacing * _onto_nodes(first / 3 + last / 6, first / 6 + last / 3, -1)


@lru_cache(maxsize=8)
def gauss_values(size: int, device: torch.device) -> Tensor:
    """Return the matrix (3 (size - 1), size) from values at nodes to values at Gauss points.

    Values between nodes are those of the cosine series through the nodes.
    """
    nodes = torch.linspace(0, 1, size, dtype=torch.float64)
    cells = torch.arange(size - 1, dtype=torch.float64)[:, None]
    points = (cells + torch.tensor(_POINTS, dtype=torch.float64)).flatten() / (size - 1)
    return torch.linalg.solve(cosines(nodes, size), cosines(points, size), left=False).to(device)


def cosines(points: Tensor, order: int) -> Tensor:
    """Return cos(pi k x) (points, order) for k from 0."""
    return torch.cos(math.pi * torch.outer(points, torch.arange(order, dtype=points.dtype)))


def _assembled(cells: Tensor) -> Stencil:
    """Return the sum of element matrices (3, 3, ..., height - 1, width - 1).

    The first axis is the entry along the rows' direction, the second along the columns'.
    """
    within = [_onto_nodes(cells[entry, 0], cells[entry, 2], -1) for entry in range(3)]
    centre = _onto_nodes(within[0], within[2], -2)
    right = _onto_nodes(cells[0, 1], cells[2, 1], -2)
    return Stencil(centre, within[1], right, cells[1, 1])


def _beside(couplings: Tensor, fields: Tensor) -> Tensor:
    """Return what nodes get from their neighbours in the same row."""
    return _onto_nodes(couplings * fields[..., 1:], couplings * fields[..., :-1], -1)


def _onto_nodes(first: Tensor, last: Tensor, axis: int) -> Tensor:
    """Return sums at nodes of what intervals along an axis give to their first and last node."""
    before = (0, 0) * (-1 - axis)
    return functional.pad(first, (*before, 0, 1)) + functional.pad(last, (*before, 1, 0))


def solve_block_tridiagonal(
    diagonal: Iterable[Tensor], coupling: Iterable[Tensor], right_side: Tensor
) -> Tensor:
    """Return x with A x = b for symmetric A, by block elimination without exchange of blocks.

    `diagonal` gives the blocks A[j, j], `coupling` the blocks A[j, j + 1], one fewer; each is
    (batch, n, n). They are read one after the other, so that a generator need not hold them all.
    b and x are (batch, blocks, n). The work is about 4 n^3 per block, the memory one n x n matrix
    per block and sample.
    """
    blocks = iter(diagonal)
    pivot, known = next(blocks), right_side[:, 0]
    factors, parts = [], []
    for place, (block, couple) in enumerate(zip(blocks, coupling, strict=True), 1):
        triangles = torch.linalg.lu_factor(pivot)
        factor = torch.linalg.lu_solve(*triangles, couple)
        part = torch.linalg.lu_solve(*triangles, known[..., None])
        pivot = torch.baddbmm(block, couple.mT, factor, alpha=-1)
        known = right_side[:, place] - (couple.mT @ part)[..., 0]
        factors.append(factor)
        parts.append(part[..., 0])
    solution = [torch.linalg.solve(pivot, known)]
    for factor, part in zip(reversed(factors), reversed(parts), strict=True):
        solution.append(part - (factor @ solution[-1][..., None])[..., 0])
    return torch.stack(solution[::-1], 1)


def tridiagonal(main: Tensor, off: Tensor) -> Tensor:
    """Return the symmetric matrices (..., n, n) of diagonals (..., n) and off-diagonals (n - 1)."""
    beside = torch.diag_embed(off, 1)
    return torch.diag_embed(main) + beside + beside.mT
