"""The primitive representations: PCA of the whole field, of its patches, of a restricted grid."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

from twoscale.domain.cuts import Aggregation
from twoscale.domain.grid import Grid
from twoscale.domain.patches import WINDOWS, PatchLayout, as_pair
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError, unknown_name
from twoscale.fields.source import FieldSource, windowed
from twoscale.representation.base import FewFeatures, Patches, Rule, Solver
from twoscale.representation.block_pca import BlockPCA

_USUAL_FACTOR = 4  # on few nodes it leaves a single cell


class GlobalPCA(BlockPCA):
    """One PCA of the whole field, all channels together.

    Parameters
    ----------
    rule
        What to keep: a share of variance (0.99), a number of modes (12), or a `RankRule`.
    solver
        PCA algorithm, one of `SOLVERS`: "randomized" (default), "covariance" or "full".
    standardised
        Whether every feature is divided by its standard deviation, as by default. Otherwise all
        features of a channel have one scale.

    Attributes
    ----------
    space, ranks, code_size, explained_variance
        The space of the fields, the modes kept, their number, and the share of variance they hold.

    Examples
    --------
    >>> GlobalPCA(5).fit(torch.randn(20, 2, 8, 8)).code_size
    5
    """

    name = "global-pca"
    title = "PCA of whole fields"

    def _prepare(self, space: Space, device: torch.device) -> None:
        pass

    def _split(self, fields: Tensor) -> Tensor:
        return fields.flatten(1)[:, None]

    def _join(self, blocks: Tensor) -> Tensor:
        return blocks.reshape(blocks.shape[0], *self.space.shape)


class PatchPCA(BlockPCA):
    """An independent PCA on each patch, all channels together, assembled with a window.

    Parameters
    ----------
    rule
        What each patch keeps: a share of variance (0.99), a number of modes (12), or a `RankRule`.
    patches
        Patches per axis (rows, columns), (4, 4) by default. Their sides differ by at most one node.
    overlap
        Whether patches of the same size are placed at half their distance; not by default.
    window
        How overlapping patches are weighed, one of `WINDOWS`. By default "hann" with `overlap`,
        else "uniform".
    solver
        PCA algorithm, one of `SOLVERS`: "randomized" (default), "covariance" or "full".
    standardised
        Whether every feature is divided by its standard deviation, as by default. Otherwise all
        features of a channel have one scale.

    Attributes
    ----------
    layout
        The `PatchLayout` of the fitted grid.
    space, ranks, code_size, explained_variance
        The space of the fields, the modes kept, their number, and the share of variance they hold.

    Examples
    --------
    >>> PatchPCA(3, patches=(2, 2)).fit(torch.randn(20, 1, 8, 9)).ranks
    {'pca': [3, 3, 3, 3]}
    >>> PatchPCA(0.99, overlap=True)
    PatchPCA(0.99, overlap=True)
    """

    name = "patch-pca"
    title = "PCA per patch"

    weights: Tensor  # (patches, channels x features): normalised window

    def __init__(
        self,
        rule: Rule,
        *,
        patches: Patches = (4, 4),
        overlap: bool = False,
        window: str | None = None,
        solver: Solver = "randomized",
        standardised: bool = True,
    ) -> None:
        super().__init__(rule, solver=solver, standardised=standardised)
        self.patches = as_pair(patches)
        self.overlap = overlap
        self.window = window or ("hann" if overlap else "uniform")
        if self.window not in WINDOWS:
            raise unknown_name("window", self.window, WINDOWS)

    def check(self, space: Space, samples: int) -> None:
        super().check(space, samples)
        self._layout_for(space.grid)

    def _layout_for(self, grid: Grid) -> PatchLayout:
        return grid.partition(self.patches, overlap=self.overlap)

    def block_count(self, grid: Grid) -> int:
        return self._layout_for(grid).count

    def _prepare(self, space: Space, device: torch.device) -> None:
        self._layout = self._layout_for(space.grid)

    def _finish(self) -> None:
        super()._finish()
        weights = self._fitted_layout.weights(self.window).to(self.mean)
        weights = weights.repeat(1, self.space.channels)
        self.register_buffer("weights", weights, persistent=False)

    @property
    def _fitted_layout(self) -> PatchLayout:
        assert self._layout is not None
        return self._layout

    def _split(self, fields: Tensor) -> Tensor:
        return self._fitted_layout.extract(fields)

    def _part(
        self, source: FieldSource, blocks: slice
    ) -> tuple[FieldSource, Callable[[Tensor], Tensor]]:
        part = self._fitted_layout.part(blocks)
        return windowed(source, part.window), part.extract

    def _join(self, blocks: Tensor) -> Tensor:
        if self._fitted_layout.overlaps:
            blocks = blocks * self.weights
        return self._fitted_layout.assemble(blocks)


class RestrictedPCA(BlockPCA):
    """One PCA of the cell means on a grid coarser by `factor`, decoded by linear interpolation.

    Cells are as equal as whole nodes allow: their sides differ by at most one node. Decoding
    interpolates between the cells' centres, is constant beyond the outermost ones, and wraps along
    periodic axes.

    Parameters
    ----------
    rule
        What to keep: a share of variance (0.99), a number of modes (12), or a `RankRule`.
    factor
        Nodes per side of a cell, 4 by default.
    few_features
        Whether the coarse grid must have fewer values than there are training fields: the paper's
        design rule, and the default.
    solver
        PCA algorithm, one of `SOLVERS`: "randomized" (default), "covariance" or "full".
    standardised
        Whether every feature is divided by its standard deviation, as by default. Otherwise all
        features of a channel have one scale.

    Attributes
    ----------
    space, ranks, code_size, explained_variance
        The space of the fields, the modes kept, their number, and the share of variance they hold.

    Examples
    --------
    >>> coarse = RestrictedPCA(5, factor=2).fit(torch.randn(20, 1, 8, 8))
    >>> coarse.decode(torch.zeros(1, 5)).shape
    torch.Size([1, 1, 8, 8])
    """

    name = "restricted-pca"
    title = "PCA on a coarse grid"

    cells: Aggregation

    def __init__(
        self,
        rule: Rule,
        *,
        factor: int = _USUAL_FACTOR,
        few_features: FewFeatures = True,
        solver: Solver = "randomized",
        standardised: bool = True,
    ) -> None:
        super().__init__(rule, solver=solver, standardised=standardised)
        self.factor = factor
        self.few_features = few_features

    def check(self, space: Space, samples: int) -> None:
        super().check(space, samples)
        sides = space.grid.shape
        largest = max(max(sides) // 2, _USUAL_FACTOR)
        if not 1 <= self.factor <= largest:
            raise TwoscaleError(
                f"factor must lie between 1 and {largest} on a grid of "
                f"{space.grid}, got {self.factor}"
            )
        features = self._features(space, self.factor)
        if self.few_features and features >= samples:
            factors = range(self.factor, max(sides) // 2 + 1)
            fitting = next((c for c in factors if self._features(space, c) < samples), None)
            hint = f"a factor of at least {fitting}, " if fitting else ""
            raise TwoscaleError(
                f"the coarse grid must have fewer values than there are training fields: factor "
                f"{self.factor} gives {features} values for {samples} fields; use {hint}more "
                "samples, or switch few_features off"
            )

    def _features(self, space: Space, factor: int) -> int:
        return space.channels * prod(_cells(space.grid, factor))

    def _prepare(self, space: Space, device: torch.device) -> None:
        self.cells = space.grid.coarsen(_cells(space.grid, self.factor)).to(device)

    def _split(self, fields: Tensor) -> Tensor:
        return self.cells.restrict(fields).flatten(1)[:, None]

    def _join(self, blocks: Tensor) -> Tensor:
        means = blocks.reshape(blocks.shape[0], self.space.channels, *self.cells.shape)
        return self.cells.prolong(means)


def _cells(grid: Grid, factor: int) -> tuple[int, ...]:
    """Return the number of cells of about `factor` nodes on each side."""
    return tuple(max(1, (2 * side + factor) // (2 * factor)) for side in grid.shape)
