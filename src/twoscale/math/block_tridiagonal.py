"""Direct solution of a batch of symmetric block-tridiagonal systems."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


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
