"""PCA on blocks of features, whatever the blocks of a field are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.grid import Grid
from twoscale.domain.patches import PatchLayout
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError, unknown_name
from twoscale.fields.source import FieldSource, MappedSource, chunk_length, slices
from twoscale.math.pca import (
    SOLVERS,
    Blocks,
    Components,
    RankRule,
    Statistics,
    cached_rows,
    fit_statistics,
)
from twoscale.representation.base import Representation, Rule, Solver
from twoscale.runtime.precision import check_range, unit_of
from twoscale.runtime.progress import Clock
from twoscale.runtime.stages import PCA

_BUFFERS = ("mean", "scale", "vectors", "variances", "rank")


class BlockPCA(Representation):
    """PCA of each block of features; blocks may keep different ranks.

    For block j with mean m, scale s and orthonormal vectors V:
    z_j = V^T ((x_j - m) / s) and x_j = m + s (V z_j). The code is z_1, ..., z_P in a row.
    The scale is each feature's standard deviation or, not `standardised`, one number for all of a
    channel. A block's features are those of the first channel, then of the second, and so on.
    A subclass says what the blocks of a field are and how a field is made of blocks, both linear.
    """

    mean: Tensor  # (blocks, features)
    scale: Tensor  # (blocks, features)
    vectors: Tensor  # (blocks, features, largest rank), zero beyond a block's rank
    variances: Tensor  # (blocks, largest rank), of the training scores
    rank: Tensor  # (blocks,)
    total: Tensor  # (blocks,): training variance of all scaled features; if not standardised
    places: Tensor  # (code_size,): where the code sits in the flattened padded scores
    sources: Tensor  # (blocks x largest rank,): its inverse; `code_size` where there is no code

    _layout: PatchLayout | None = None  # of the fitted grid, where blocks are patches

    def __init__(
        self, rule: Rule, *, solver: Solver = "randomized", standardised: bool = True
    ) -> None:
        super().__init__()
        if solver not in SOLVERS:
            raise unknown_name("PCA solver", solver, SOLVERS)
        self.rule = RankRule.of(rule)
        self.solver = solver
        self.standardised = standardised
        self.noise_units: Tensor | None = None  # (channels,): of an earlier stage's fields
        for name in self._fitted:
            self.register_buffer(name, None)

    @property
    def _fitted(self) -> tuple[str, ...]:
        """Return the names of the buffers that a fit makes."""
        return _BUFFERS if self.standardised else (*_BUFFERS, "total")

    @property
    def layout(self) -> PatchLayout | None:
        return self._layout

    def block_count(self, grid: Grid) -> int:
        """Return how many blocks fields on a grid have."""
        return 1

    @abstractmethod
    def _prepare(self, space: Space, device: torch.device) -> None:
        """Learn the space: set what `_split` and `_join` need, on the fields' device."""

    @abstractmethod
    def _split(self, fields: Tensor) -> Tensor:
        """Return the blocks (batch, blocks, features) of fields (batch, channels, ..., ...)."""

    @abstractmethod
    def _join(self, blocks: Tensor) -> Tensor:
        """Return fields (batch, channels, rows, columns) from blocks (batch, blocks, features)."""

    def _fit(self, source: FieldSource, *, seed: int, clock: Clock, name: str) -> None:
        self.fit_by(self.rule, source, space=self.space, seed=seed, clock=clock, name=name)

    def fit_by(
        self,
        rule: RankRule,
        source: FieldSource,
        *,
        space: Space,
        seed: int,
        clock: Clock,
        name: str,
    ) -> None:
        """Fit by another rule than its own, on fields of a space that has been checked."""
        self.space = space
        with clock.stage(f"{PCA}{name}"):
            first = next(iter(source.read(source.ranges()[0])))[:1]
            self._prepare(self.space, first.device)
            statistics = fit_statistics(source, self._split, first)
            check_range(statistics.largest(source.shape[0]))
            units = self.noise_units
            if units is None:
                units = statistics.channel_scales(self.space.channels)
            statistics = statistics.without_noise(units)
            if not self.standardised:
                statistics = self._common_scale(statistics)
            blocks = self._scaled(source, statistics)
            components = SOLVERS[self.solver](blocks, rule, seed=seed)
            self._store(statistics, components)

    def _common_scale(self, statistics: Statistics) -> Statistics:
        """Return the statistics with one scale for all features of a channel."""
        return statistics.with_common_scale(self.space.channels)

    def _scaled(self, source: FieldSource, statistics: Statistics) -> Blocks:
        # What does not count as varying must be zero, whatever rounding leaves of it.
        scale = torch.where(statistics.varying, statistics.scale, torch.inf).float()
        mean = statistics.mean.float()

        def data(blocks: slice) -> FieldSource:
            fields, split = self._part(source, blocks)
            work = partial(_standardised, split=split, mean=mean[blocks], scale=scale[blocks])
            return MappedSource(fields, work, (1, *mean[blocks].shape))

        return Blocks(data, samples=source.shape[0], statistics=statistics)

    def _part(
        self, source: FieldSource, blocks: slice
    ) -> tuple[FieldSource, Callable[[Tensor], Tensor]]:
        """Return the part of all fields that some blocks need, and what makes the blocks of it."""
        return source, partial(self._some, blocks=blocks)

    def _some(self, fields: Tensor, blocks: slice) -> Tensor:
        return self._split(fields)[:, blocks]

    def _store(self, statistics: Statistics, components: Components) -> None:
        device = statistics.mean.device
        self.mean = statistics.mean.float()
        self.scale = statistics.scale.float()
        self.vectors = components.vectors.float()
        self.variances = components.variances.float()
        self.rank = torch.tensor(components.ranks, device=device)
        if not self.standardised:
            self.total = statistics.total.float()
        self._finish()

    def _finish(self) -> None:
        """Derive, from the fitted buffers, the places of the code in the padded blocks."""
        largest = self.vectors.shape[2]
        kept = torch.arange(largest, device=self.rank.device) < self.rank[:, None]
        places = kept.flatten().nonzero()[:, 0]
        self.register_buffer("places", places, persistent=False)
        sources = torch.full_like(kept.flatten(), len(places), dtype=torch.int64)
        sources[places] = torch.arange(len(places), device=places.device)
        self.register_buffer("sources", sources, persistent=False)
        self._ranks = [int(k) for k in self.rank]
        self._code_size = sum(self._ranks)

    def restore(self, tensors: Mapping[str, Tensor], space: Space) -> Self:
        missing = [name for name in self._fitted if name not in tensors]
        if missing:
            raise TwoscaleError(f"the weights lack {missing}: the artifact is damaged")
        for name in self._fitted:
            setattr(self, name, tensors[name])
        self.space = space
        self._prepare(space, self.mean.device)
        self._finish()
        return self

    def encode(self, fields: Tensor) -> Tensor:
        self._check_fields(fields)
        values = (self._split(fields.to(self.mean.dtype)) - self.mean) / self.scale
        scores = torch.bmm(values.transpose(0, 1), self.vectors)
        return scores.transpose(0, 1).flatten(1).index_select(1, self.places)

    def decode(self, codes: Tensor) -> Tensor:
        self._check_codes(codes)
        return self._join(self.mean + self._deviations(codes.to(self.mean.dtype)))

    def _deviations(self, codes: Tensor) -> Tensor:
        """Return s (V z), the blocks (batch, blocks, features) of codes without the mean."""
        count, _, largest = self.vectors.shape
        if self._code_size < count * largest:
            codes = functional.pad(codes, (0, 1)).index_select(1, self.sources)
        padded = codes.unflatten(1, (count, largest))
        values = torch.bmm(padded.transpose(0, 1), self.vectors.mT).transpose(0, 1)
        return self.scale * values

    def energies(self, unit: Tensor) -> Tensor:
        """Return the energy (blocks, largest rank) of each mode, float64: zero beyond its rank.

        It is what the mode contributes to the mean square of the decoded training fields, each
        channel in its `unit` (channels, 1, ...), summed over nodes: its variance times the squared
        norm of the field that a unit of it decodes to.
        """
        self._require_fit()
        norms = torch.zeros_like(self.variances).flatten()
        for part in slices(self.code_size, chunk_length(*self.space.shape)):
            places = torch.arange(part.start, part.stop, device=self.places.device)
            units = functional.one_hot(places, self.code_size).to(self.mean.dtype)
            fields = self._join(self._deviations(units)) / unit
            norms[self.places[part]] = fields.square().flatten(1).sum(1)
        return (self.variances * norms.reshape(self.variances.shape)).double()

    def truncate(self, ranks: Sequence[int]) -> bool:
        """Keep the leading modes, so many of each block; say whether that took any away."""
        self._require_fit()
        if list(ranks) == self._ranks:
            return False
        largest = max(ranks)
        self.rank = torch.tensor(ranks, device=self.rank.device)
        kept = torch.arange(largest, device=self.rank.device) < self.rank[:, None]
        self.vectors = self.vectors[..., :largest] * kept[:, None]
        self.variances = self.variances[:, :largest] * kept
        self._finish()
        return True

    def ignore_noise(self, first: Representation) -> None:
        """Count as noise what is rounding beside the fields of a chain, which `first` represents.

        By default it is what is rounding beside the fields of its own fit.
        """
        self.noise_units = first.unit.flatten().double()

    def unaffected_by(self, earlier: Representation) -> bool:
        """Say whether its fit does not depend on the modes that earlier stages keep."""
        return False

    def _require_fit(self) -> None:
        if self._buffers["vectors"] is None:  # not by its name: that is looked for in vain first
            raise TwoscaleError("this representation is not fitted yet: call fit first")

    @property
    def unit(self) -> Tensor:
        self._require_fit()
        shown = (self.vectors != 0).any(2)  # features that never vary have scale 1, and no part
        return channel_units(self.scale, shown, self.space)

    @property
    def mean_and_spread(self) -> tuple[float, float]:
        self._require_fit()
        shown = (self.vectors != 0).any(2)
        if not bool(shown.any()):
            return float(self.mean.abs().max()), 0.0
        apart = (len(shown), self.space.channels, -1)
        counts = shown.reshape(apart).sum((0, 2)).clamp_min(1)
        mean, scale = (
            (torch.where(shown, values.double(), 0).square().reshape(apart).sum((0, 2)) / counts)
            for values in (self.mean, self.scale)
        )
        return least_varying(mean.sqrt(), scale.sqrt())

    @property
    def block_sizes(self) -> list[int]:
        return [self.code_size]

    @property
    def code_size(self) -> int:
        self._require_fit()
        return self._code_size

    @property
    def code_spread(self) -> Tensor:
        self._require_fit()
        return self.variances.flatten()[self.places].clamp_min(0).sqrt()

    @property
    def ranks(self) -> dict[str, list[int]]:
        self._require_fit()
        return {"pca": list(self._ranks)}

    @property
    def explained_variance(self) -> dict[str, float]:
        # Of standardised features each has variance one, but for those that never vary.
        total = (self.scale != 1).sum(1) if self.standardised else self.total
        kept = torch.arange(self.variances.shape[1], device=self.rank.device) < self.rank[:, None]
        share = (self.variances * kept).sum(1) / torch.where(total > 0, total, 1)
        return {"pca": float(share.mean())}


def _standardised(
    chunk: Tensor, split: Callable[[Tensor], Tensor], mean: Tensor, scale: Tensor
) -> Tensor:
    """Return the standardised data (blocks, batch, features) of the blocks split(fields)."""
    found = torch.empty((len(mean), len(chunk), mean.shape[1]), device=chunk.device)
    for rows in slices(len(chunk), cached_rows(chunk)):
        values = split(chunk[rows]).float() - mean
        found[:, rows] = values.div_(scale).transpose(0, 1)
    return found


def channel_units(scale: Tensor, shown: Tensor, space: Space) -> Tensor:
    """Return the units (channels, 1, ...) of channels from the features' scales (blocks, features).

    It is the root mean square of the scales that are `shown`; of a single channel the power of four
    next to the largest.
    """
    if space.channels == 1:
        unit = scale.new_tensor(unit_of(float(torch.where(shown, scale, 0).max())))
        return unit.reshape(1, *space.ones)
    apart = (len(scale), space.channels, -1)
    squares = torch.where(shown, scale.double(), 0).square().reshape(apart).sum((0, 2))
    mean = (squares / shown.reshape(apart).sum((0, 2)).clamp_min(1)).sqrt()
    return torch.where(mean > 0, mean, 1.0).to(scale.dtype).reshape(-1, *space.ones)


def least_varying(means: Tensor, spreads: Tensor) -> tuple[float, float]:
    """Return both of the channel that varies least beside its mean, of those that vary at all.

    Means and spreads are sizes (channels,), float64.
    """
    ratios = torch.where(spreads > 0, spreads / means.clamp_min(1e-300), torch.inf)
    worst = int(ratios.argmin()) if bool((spreads > 0).any()) else int(means.argmax())
    return float(means[worst]), float(spreads[worst])
