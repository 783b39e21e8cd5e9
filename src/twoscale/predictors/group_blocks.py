"""The kernel matrix of all images under a group, as one block per irreducible representation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from twoscale.domain.symmetries import Group, irreducible, products

_SKEW = 1e-6  # of kernel values that exact symmetry would make equal
_UNEQUAL = 1e-4  # of distances that exact symmetry would make equal; 1e-3 doubles errors
_FEW = 64  # samples whose distances are compared


def turn_with_fields(codes: Tensor, group: Group) -> bool:
    """Say whether codes (symmetries x samples, n) of images are as far apart as those of fields.

    Patches that a symmetry does not map onto patches have codes that are not: an odd number of
    nodes in an even number of patches, for one.
    """
    few = codes.unflatten(0, (len(group), -1))[:, :_FEW].double()
    distances = torch.cdist(few, few)
    return bool((distances - distances[0]).norm() <= _UNEQUAL * distances.norm())


def image_blocks(
    inputs: Tensor, group: Group, kernel: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return k(x_i, s x_j) for every symmetry s, (symmetries, samples, samples).

    The kernel matrix of all images, k(g x_i, h x_j), depends on the symmetry from g to h only, if
    codes turn with their fields exactly. Where they do so only nearly, because a PCA found its
    directions by iteration or cut a pair of equal ones apart, all images are averaged over: that
    is again a kernel, and exactly symmetric.
    """
    table = products(group)

    def row(first: int) -> Tensor:
        return torch.stack([kernel(inputs[first], inputs[place]) for place in table[first]])

    back = [group.index(symmetry.inverse) for symmetry in group]
    blocks = row(0)
    if float((blocks - blocks[back].mT).abs().max()) > _SKEW:
        for first in range(1, len(group)):
            blocks += row(first)
        blocks /= len(group)
    return 0.5 * (blocks + blocks[back].mT)


def decompose(
    blocks: Tensor, targets: Tensor, group: Group
) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Return eigenvalues, targets, eigenvectors and functions on the group, part by part.

    The group's Fourier transform turns the kernel matrix of all images into one block
    sum_s R(s) k(x_i, s x_j) per irreducible representation R, of d x samples rows, for each of its
    d rows of functions: for the square four of one and one of two, instead of one of eight.
    """
    parts = []
    for matrices, block in parts_of(blocks, group):
        values, vectors = torch.linalg.eigh(block)
        for basis in bases(matrices):
            projected = vectors.mT @ transform(targets, basis)
            parts.append((values.clamp_min(0), projected, vectors, basis))
    return parts


def parts_of(blocks: Tensor, group: Group) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each irreducible representation and its block of the kernel matrix of all images."""
    for matrices in irreducible(group):
        matrices = matrices.to(blocks)
        yield matrices, torch.einsum("scb,sij->cibj", matrices, blocks).flatten(2).flatten(0, 1)


def bases(matrices: Tensor) -> list[Tensor]:
    """Return the functions on the group (symmetries, d), one row of d after the other.

    Squared traces add up to the number of symmetries if all rows are different functions, and to
    twice as many if half of the rows have the functions of the others.
    """
    symmetries, size = matrices.shape[:2]
    traces = float(matrices.diagonal(dim1=1, dim2=2).sum(1).square().sum())
    rows = round(size * symmetries / traces)
    return [math.sqrt(size / symmetries) * matrices[:, row] for row in range(rows)]


def transform(values: Tensor, basis: Tensor) -> Tensor:
    """Return sum_g basis[g] values[g] for each column of `basis`, one below the other."""
    return torch.einsum("gb,gnq->bnq", basis, values).flatten(0, 1)


def transform_back(values: Tensor, basis: Tensor) -> Tensor:
    """Return what `transform` turns into values (columns x samples, outputs) of its range."""
    return torch.einsum("gb,bnq->gnq", basis, values.unflatten(0, (basis.shape[1], -1)))
