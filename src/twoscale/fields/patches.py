"""Rectangular patches of a grid: extraction, weighted assembly, seams."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.errors import TwoscaleError

Pair = tuple[int, int]
Seams = tuple[list[int], list[int]]


@dataclass(frozen=True)
class PatchLayout:
    """Patches of one size, placed at a fixed stride so that they cover the grid exactly.

    All pairs are (rows, columns). Patches are numbered row by row.
    """

    shape: Pair
    patch: Pair
    stride: Pair

    def __post_init__(self) -> None:
        for axis, size, patch, stride in zip(
            ("height", "width"), self.shape, self.patch, self.stride, strict=True
        ):
            fits = 1 <= stride <= patch <= size and (size - patch) % stride == 0
            if not fits:
                raise TwoscaleError(
                    f"patches of side {patch} at stride {stride} do not cover a {axis} of {size}: "
                    "the stride must be at most the side and divide (size - side)"
                )

    @classmethod
    def tiling(cls, shape: Pair, counts: Pair, *, overlap: bool = False) -> PatchLayout:
        """Return `counts` patches per axis without overlap, or the same patches at half stride."""
        for axis, size, count in zip(("height", "width"), shape, counts, strict=True):
            if count < 1 or size % count or size // count < 2:
                fitting = [k for k in range(1, size // 2 + 1) if size % k == 0]
                raise TwoscaleError(
                    f"{count} patches do not divide a {axis} of {size}: use one of {fitting}"
                )
        patch = (shape[0] // counts[0], shape[1] // counts[1])
        if not overlap:
            return cls(shape, patch, patch)
        if patch[0] % 2 or patch[1] % 2:
            raise TwoscaleError(
                f"half-stride overlap needs patches of even side, got {patch[0]}x{patch[1]}: "
                "choose another number of patches"
            )
        return cls(shape, patch, (patch[0] // 2, patch[1] // 2))

    @property
    def counts(self) -> Pair:
        """Return the number of patches per axis."""
        rows, columns = (
            (size - patch) // stride + 1
            for size, patch, stride in zip(self.shape, self.patch, self.stride, strict=True)
        )
        return (rows, columns)

    @property
    def count(self) -> int:
        return math.prod(self.counts)

    @property
    def features(self) -> int:
        """Return the number of nodes of one patch."""
        return math.prod(self.patch)

    @property
    def overlaps(self) -> bool:
        return self.stride != self.patch

    @property
    def seams(self) -> Seams:
        """Return the rows and columns that are an interior start or stop of some patch."""
        rows, columns = (
            sorted(
                {
                    edge
                    for k in range(count)
                    for edge in (k * stride, k * stride + patch)
                    if 0 < edge < size
                }
            )
            for size, patch, stride, count in zip(
                self.shape, self.patch, self.stride, self.counts, strict=True
            )
        )
        return rows, columns

    def extract(self, fields: Tensor) -> Tensor:
        """Return the patches of `fields` (batch, height, width) as (batch, count, features)."""
        views = fields.unfold(1, self.patch[0], self.stride[0])
        views = views.unfold(2, self.patch[1], self.stride[1])
        return views.reshape(len(fields), self.count, self.features)

    def assemble(self, patches: Tensor) -> Tensor:
        """Return the sum of `patches` (batch, count, features), placed, as fields."""
        batch = len(patches)
        if self.overlaps:
            columns = patches.transpose(1, 2)
            return functional.fold(columns, self.shape, self.patch, stride=self.stride)[:, 0]
        tiles = patches.reshape(batch, *self.counts, *self.patch)
        return tiles.transpose(2, 3).reshape(batch, *self.shape)

    def weights(self, window: str) -> Tensor:
        """Return the normalised assembly weights (count, features), float64.

        With window w the weight of patch q at node x is w_q(x) / sum_r w_r(x), so that
        assembling the weighted patches of a field gives that field back (partition of unity).
        """
        profile = WINDOWS[window](self.patch).reshape(1, -1).expand(self.count, -1)
        total = self.assemble(profile[None])
        return profile / self.extract(total)[0]


def _uniform(patch: Pair) -> Tensor:
    return torch.ones(patch, dtype=torch.float64)


def _hann(patch: Pair) -> Tensor:
    """Outer product of symmetric Hann windows, floored so that no node is left without weight."""
    rows, columns = (torch.hann_window(side, periodic=False, dtype=torch.float64) for side in patch)
    return torch.outer(rows, columns).clamp_min(1e-6)


WINDOWS = {"uniform": _uniform, "hann": _hann}
