"""Bilinear finite elements on the cells of a grid, with a reaction that varies inside cells.

The matrices are symmetric and couple each node with its eight neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.grid import Grid

_POINTS = (0.5 - math.sqrt(0.15), 0.5, 0.5 + math.sqrt(0.15))  # Gauss points of a cell's side
_WEIGHTS = (5 / 18, 8 / 18, 5 / 18)
# One side of a cell has three entries: first end with itself, first with last, last with itself.
_MASS, _STIFFNESS = (1 / 3, 1 / 6, 1 / 3), (1.0, -1.0, 1.0)


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
