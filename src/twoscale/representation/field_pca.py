"""The primitive representations: PCA of the whole field, of its patches, of a restricted grid."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.errors import TwoscaleError
from twoscale.fields.patches import WINDOWS, PatchLayout
from twoscale.linalg.pca import RankRule
from twoscale.representation.block_pca import BlockPCA


class GlobalPCA(BlockPCA):
    """One PCA of the whole field."""

    def _prepare(self, shape: tuple[int, int], device: torch.device) -> None:
        self._shape = shape

    def _split(self, fields: Tensor) -> Tensor:
        return fields.flatten(1)[:, None]

    def _join(self, blocks: Tensor) -> Tensor:
        return blocks.reshape(len(blocks), *self._shape)


class PatchPCA(BlockPCA):
    """An independent PCA on each patch of a layout, assembled with a window.

    `patches` counts the non-overlapping patches per axis; with `overlap` the same patches are
    placed at half stride. A `layout` given instead fixes size and stride freely.
    """

    weights: Tensor  # (patches, features): normalised window

    def __init__(
        self,
        rule: RankRule,
        *,
        patches: tuple[int, int] = (4, 4),
        overlap: bool = False,
        window: str | None = None,
        layout: PatchLayout | None = None,
        solver: str = "randomized",
        standardised: bool = True,
    ) -> None:
        super().__init__(rule, solver=solver, standardised=standardised)
        self.patches = patches
        self.overlap = overlap
        self.window = window or ("hann" if overlap else "uniform")
        if self.window not in WINDOWS:
            raise TwoscaleError(f"no window is called '{window}': known are {list(WINDOWS)}")
        self._given_layout = layout
        self._layout = layout

    def extra_repr(self) -> str:
        place = self._given_layout or f"patches={self.patches}, overlap={self.overlap}"
        return f"{super().extra_repr()}, {place}, {self.window}"

    def check(self, shape: tuple[int, int], samples: int) -> None:
        super().check(shape, samples)
        self._layout_for(shape)

    def _layout_for(self, shape: tuple[int, int]) -> PatchLayout:
        given = self._given_layout
        if given is None:
            return PatchLayout.tiling(shape, self.patches, overlap=self.overlap)
        if given.shape != shape:
            raise TwoscaleError(
                f"the patch layout is for fields of {given.shape[0]}x{given.shape[1]}, "
                f"these are {shape[0]}x{shape[1]}"
            )
        return given

    def block_count(self, shape: tuple[int, int]) -> int:
        return self._layout_for(shape).count

    def _prepare(self, shape: tuple[int, int], device: torch.device) -> None:
        self._layout = self._layout_for(shape)

    def _finish(self) -> None:
        super()._finish()
        weights = self._fitted_layout.weights(self.window).to(self.mean)
        self.register_buffer("weights", weights, persistent=False)

    @property
    def _fitted_layout(self) -> PatchLayout:
        assert self._layout is not None
        return self._layout

    def _split(self, fields: Tensor) -> Tensor:
        return self._fitted_layout.extract(fields)

    def _join(self, blocks: Tensor) -> Tensor:
        if self._fitted_layout.overlaps:
            blocks = blocks * self.weights
        return self._fitted_layout.assemble(blocks)

    @property
    def layout(self) -> PatchLayout | None:
        return self._layout


class RestrictedPCA(BlockPCA):
    """One PCA of the block means on a grid coarser by `factor`, decoded by bilinear prolongation.

    `few_features` is the paper's design rule: fewer coarse nodes than training fields.
    """

    def __init__(
        self,
        rule: RankRule,
        *,
        factor: int = 4,
        few_features: bool = True,
        solver: str = "randomized",
        standardised: bool = True,
    ) -> None:
        super().__init__(rule, solver=solver, standardised=standardised)
        self.factor = factor
        self.few_features = few_features

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, factor={self.factor}"

    def check(self, shape: tuple[int, int], samples: int) -> None:
        super().check(shape, samples)
        height, width = shape
        common = [c for c in range(1, min(shape) // 2 + 1) if height % c == 0 and width % c == 0]
        if self.factor not in common:
            raise TwoscaleError(
                f"the coarse factor must divide the grid: {self.factor} does not divide "
                f"{height}x{width}, use one of {common}"
            )
        nodes = (height // self.factor) * (width // self.factor)
        if self.few_features and nodes >= samples:
            fitting = [c for c in common if (height // c) * (width // c) < samples]
            hint = f"a coarse factor of {fitting}, " if fitting else ""
            raise TwoscaleError(
                f"the coarse grid must have fewer nodes than there are training fields: factor "
                f"{self.factor} gives {nodes} nodes for {samples} fields; use {hint}more samples, "
                "or few_features=false"
            )

    def _prepare(self, shape: tuple[int, int], device: torch.device) -> None:
        self._shape = shape
        self._coarse = (shape[0] // self.factor, shape[1] // self.factor)

    def _split(self, fields: Tensor) -> Tensor:
        return functional.avg_pool2d(fields[:, None], self.factor).flatten(2)

    def _join(self, blocks: Tensor) -> Tensor:
        coarse = blocks.reshape(len(blocks), 1, *self._coarse)
        fine = functional.interpolate(coarse, self._shape, mode="bilinear", align_corners=False)
        return fine[:, 0]
