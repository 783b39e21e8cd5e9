"""Standardised PCA on blocks of features: the whole field, its patches, or a restricted grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.clock import Clock
from twoscale.errors import TwoscaleError
from twoscale.linalg.pca import (
    SOLVERS,
    Blocks,
    Components,
    RankRule,
    Statistics,
    cached_rows,
    fit_statistics,
)
from twoscale.patches import WINDOWS, PatchLayout
from twoscale.representation.base import Representation
from twoscale.source import FieldSource, as_source, slices

_BUFFERS = ("grid_shape", "mean", "scale", "vectors", "variances", "rank")


class BlockPCA(Representation):
    """PCA of each block of standardised features; blocks may keep different ranks.

    For block j with mean m, scale s and orthonormal vectors V:
    z_j = V^T ((x_j - m) / s) and x_j = m + s (V z_j). The code is z_1, ..., z_P in a row.
    A subclass says what the blocks of a field are and how a field is made of blocks.
    """

    grid_shape: Tensor  # (2,)
    mean: Tensor  # (blocks, features)
    scale: Tensor  # (blocks, features)
    vectors: Tensor  # (blocks, features, largest rank), zero beyond a block's rank
    variances: Tensor  # (blocks, largest rank), of the training scores
    rank: Tensor  # (blocks,)
    places: Tensor  # (code_size,): where the code sits in the flattened padded scores

    def __init__(self, rule: RankRule, *, solver: str = "randomized") -> None:
        super().__init__()
        if solver not in SOLVERS:
            raise TwoscaleError(f"no PCA solver is called '{solver}': known are {list(SOLVERS)}")
        self.rule = rule
        self.solver = solver
        for name in _BUFFERS:
            self.register_buffer(name, None)

    def extra_repr(self) -> str:
        """Return all that decides the fit, for `repr`: equal ones fit alike."""
        return f"{self.rule}, {self.solver}"

    @abstractmethod
    def _prepare(self, shape: tuple[int, int]) -> None:
        """Learn the grid: set what `_split` and `_join` need."""

    @abstractmethod
    def _split(self, fields: Tensor) -> Tensor:
        """Return the blocks (batch, blocks, features) of fields (batch, height, width)."""

    @abstractmethod
    def _join(self, blocks: Tensor) -> Tensor:
        """Return fields (batch, height, width) from blocks (batch, blocks, features)."""

    def fit(
        self,
        fields: Tensor | FieldSource,
        *,
        seed: int = 0,
        clock: Clock | None = None,
        name: str = "output",
    ) -> Self:
        source = as_source(fields)
        samples, height, width = source.shape
        self.check((height, width), samples)
        with (clock or Clock()).stage(f"pca_{name}"):
            self._prepare((height, width))
            statistics = fit_statistics(self._split(rows) for rows in _in_cache(source))
            blocks = self._standardised(source, statistics)
            components = SOLVERS[self.solver](blocks, self.rule, seed=seed)
            self._store((height, width), statistics, components)
        return self

    def _standardised(self, source: FieldSource, statistics: Statistics) -> Blocks:
        mean, scale = statistics.mean.float(), statistics.scale.float()

        def passes(part: slice) -> Iterator[Tensor]:
            for chunk in source.chunks():
                shape = (len(mean[part]), len(chunk), mean.shape[1])
                blocks = torch.empty(shape, device=chunk.device)
                for rows in slices(len(chunk), cached_rows(chunk)):
                    values = self._split(chunk[rows])[:, part].float() - mean[part]
                    blocks[:, rows] = values.div_(scale[part]).transpose(0, 1)
                yield blocks

        return Blocks(passes, samples=source.shape[0], statistics=statistics)

    def _store(
        self, shape: tuple[int, int], statistics: Statistics, components: Components
    ) -> None:
        device = statistics.mean.device
        self.grid_shape = torch.tensor(shape, device=device)
        self.mean = statistics.mean.float()
        self.scale = statistics.scale.float()
        self.vectors = components.vectors.float()
        self.variances = components.variances.float()
        self.rank = torch.tensor(components.ranks, device=device)
        self._finish()

    def _finish(self) -> None:
        """Derive, from the fitted buffers, the places of the code in the padded blocks."""
        largest = self.vectors.shape[2]
        kept = torch.arange(largest, device=self.rank.device) < self.rank[:, None]
        places = kept.flatten().nonzero()[:, 0]
        self.register_buffer("places", places, persistent=False)
        self._ranks = [int(k) for k in self.rank]
        height, width = (int(side) for side in self.grid_shape)
        self._fitted_shape = (height, width)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        missing = [name for name in _BUFFERS if name not in tensors]
        if missing:
            raise TwoscaleError(f"the weights lack {missing}: the artifact is damaged")
        for name in _BUFFERS:
            setattr(self, name, tensors[name])
        height, width = (int(size) for size in tensors["grid_shape"])
        self._prepare((height, width))
        self._finish()
        return self

    def encode(self, fields: Tensor) -> Tensor:
        self._require_fit()
        if tuple(fields.shape[1:]) != self._fitted_shape:
            raise TwoscaleError(
                f"this representation was fitted on fields of {self._fitted_shape}, "
                f"these have shape {tuple(fields.shape)}"
            )
        values = (self._split(fields.to(self.mean.dtype)) - self.mean) / self.scale
        scores = torch.bmm(values.transpose(0, 1), self.vectors)
        return scores.transpose(0, 1).flatten(1)[:, self.places]

    def decode(self, codes: Tensor) -> Tensor:
        self._require_fit()
        if codes.shape[1:] != (self.code_size,):
            raise TwoscaleError(
                f"codes of this representation have {self.code_size} entries, "
                f"these have shape {tuple(codes.shape)}"
            )
        codes = codes.to(self.mean.dtype)
        count, _, largest = self.vectors.shape
        padded = codes.new_zeros(len(codes), count * largest)
        padded = padded.index_copy(1, self.places, codes).reshape(len(codes), count, largest)
        values = torch.bmm(padded.transpose(0, 1), self.vectors.mT).transpose(0, 1)
        return self._join(self.mean + self.scale * values)

    def _require_fit(self) -> None:
        if self.vectors is None:
            raise TwoscaleError("this representation is not fitted yet: call fit first")

    @property
    def block_sizes(self) -> list[int]:
        return [sum(self.ranks["pca"])]

    @property
    def ranks(self) -> dict[str, list[int]]:
        self._require_fit()
        return {"pca": list(self._ranks)}

    @property
    def explained_variance(self) -> dict[str, float]:
        # Of standardised features each has variance one, but for those that never vary.
        varying = (self.scale != 1).sum(1).clamp(min=1)
        kept = torch.arange(self.variances.shape[1], device=self.rank.device) < self.rank[:, None]
        return {"pca": float(((self.variances * kept).sum(1) / varying).mean())}


class GlobalPCA(BlockPCA):
    """One PCA of the whole field."""

    def _prepare(self, shape: tuple[int, int]) -> None:
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
    ) -> None:
        super().__init__(rule, solver=solver)
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

    def _prepare(self, shape: tuple[int, int]) -> None:
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
    ) -> None:
        super().__init__(rule, solver=solver)
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

    def _prepare(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        self._coarse = (shape[0] // self.factor, shape[1] // self.factor)

    def _split(self, fields: Tensor) -> Tensor:
        return functional.avg_pool2d(fields[:, None], self.factor).flatten(2)

    def _join(self, blocks: Tensor) -> Tensor:
        coarse = blocks.reshape(len(blocks), 1, *self._coarse)
        fine = functional.interpolate(coarse, self._shape, mode="bilinear", align_corners=False)
        return fine[:, 0]


def _in_cache(source: FieldSource) -> Iterator[Tensor]:
    """Yield the fields a few at a time on a CPU, whole chunks on a GPU."""
    for chunk in source.chunks():
        yield from chunk.split(cached_rows(chunk))
