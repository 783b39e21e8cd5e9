"""Principal components of many scaled blocks of features at once.

A block is a group of features (one patch, or a whole field). All blocks of a family have the
same number of samples and features and are treated in batched products. Data arrives in chunks
of samples; each solver says how many passes it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.held import held
from twoscale.fields.source import FieldSource, slices, total
from twoscale.fields.workers import Tensors
from twoscale.runtime.threads import one_thread, prefetch

OVERSAMPLING = 20
POWER_ITERATIONS = 4
FIRST_RANK = 16
RANK_GROWTH = 1.5
_GRAM_BYTES = 2**30
_CACHED_VALUES = 2**16
_NOISE = 1e-6  # of a channel's unit
_MEAN_NOISE = 2.0**-21  # of a feature's mean: four steps from one number to the next in float32
_ROWS = 512  # samples of a group that a CPU multiplies at a time
_DATA_BYTES = 2**28  # of standardised blocks in memory at a time
_BASIS_BYTES = 2**12  # for each feature: a basis and its images, with some hundred directions
_DATA_BYTES_CUDA = 2**32


@dataclass(frozen=True)
class Statistics:
    """Per-feature training statistics, float64: population mean and scale.

    Features that never vary have scale 1, do not count towards the total variance, and have no
    part in any component: decoding gives them back exactly.
    """

    mean: Tensor  # (blocks, features)
    scale: Tensor  # (blocks, features)
    varying: Tensor  # (blocks, features), bool
    total: Tensor  # (blocks,): variance of all scaled features together

    def largest(self, samples: int) -> float:
        """Return a bound of all absolute values that so many samples can have."""
        deviations = torch.where(self.varying, self.scale, 0.0) * samples**0.5
        return float((self.mean.abs() + deviations).max())

    def with_common_scale(self, channels: int = 1) -> Statistics:
        """Return the same with one scale for all features of a channel: the root mean variance.

        A block's features are those of the first channel, then of the second, and so on. Components
        then maximise the plain variance of the features, not of standardised ones.
        """
        return self.with_channel_scales(self.channel_scales(channels))

    def channel_scales(self, channels: int) -> Tensor:
        """Return the root mean variance (channels,) of the features that vary; 1 without any."""
        apart = (len(self.scale), channels, -1)
        variances = torch.where(self.varying, self.scale.square(), 0.0).reshape(apart)
        varying = self.varying.reshape(apart).sum((0, 2)).clamp_min(1)
        common = (variances.sum((0, 2)) / varying).sqrt()
        return torch.where(common > 0, common, 1.0)

    def with_channel_scales(self, scales: Tensor) -> Statistics:
        """Return the same with these scales (channels,), each for all features of a channel."""
        apart = (len(self.scale), len(scales), -1)
        variances = torch.where(self.varying, self.scale.square(), 0.0).reshape(apart)
        scale = scales[:, None].expand(variances.shape).flatten(1).contiguous()
        return replace(self, scale=scale, total=(variances.sum(2) / scales.square()).sum(1))

    def without_noise(self, units: Tensor) -> Statistics:
        """Return the same with features constant that vary by rounding of single precision only.

        These vary by less than 1e-6 of their channel's unit (channels,), or by less than four
        steps of float32 around their own mean. Scaled to unit variance they would count as much as
        any other feature, and the smallest change of them would be a huge one.
        """
        apart = (len(self.scale), len(units), -1)
        channel_floor = (_NOISE * units[:, None]).expand(self.scale.reshape(apart).shape)
        floor = channel_floor.flatten(1).maximum(_MEAN_NOISE * self.mean.abs())
        varying = self.varying & (self.scale > floor)
        scale = torch.where(varying, self.scale, 1.0)
        return replace(self, scale=scale, varying=varying, total=varying.sum(1).double())


def cached_rows(values: Tensor) -> int:
    """Return how many rows to work on at a time: on a CPU, few enough to stay in its cache."""
    return len(values) if values.is_cuda else max(1, _CACHED_VALUES // values[0].numel())


def fit_statistics(
    source: FieldSource, split: Callable[[Tensor], Tensor], first: Tensor
) -> Statistics:
    """Return the statistics of blocks `split(fields)`, (batch, blocks, features), in one pass.

    Sums are taken of differences to the `first` sample (1, ...): a constant feature then has
    variance exactly zero, and large means cost no accuracy.
    """
    shift = split(first)[0].double()
    sums, squares = total(partial(_moments, split=split, shift=shift), source)
    offset = sums / source.shape[0]
    variance = (squares / source.shape[0] - offset.square()).clamp_min(0)
    constant = variance <= 1e-15 * squares / source.shape[0]
    scale = torch.where(constant, 1.0, variance.sqrt())
    varying = (~constant).sum(1).double()  # each standardised feature has variance one
    return Statistics(shift + offset, scale, ~constant, varying)


def _moments(chunks: Iterator[Tensor], split: Callable[[Tensor], Tensor], shift: Tensor) -> Tensors:
    """Return the sums of all features' differences from `shift`, and of their squares."""
    sums, squares = torch.zeros_like(shift), torch.zeros_like(shift)
    for chunk in chunks:
        for fields in chunk.split(cached_rows(chunk)):
            values = split(fields) - shift  # in double precision
            sums += values.sum(0)
            squares += values.square_().sum(0)
    return sums, squares


@dataclass(frozen=True)
class RankRule:
    """How many components to keep, per block.

    Give at least one of the two.

    Parameters
    ----------
    variance
        Share of variance in (0, 1]: the smallest number of components that reaches it is kept. None
        by default.
    components
        Number of components to keep; with a `variance`, at most that many. None by default.

    Examples
    --------
    >>> RankRule(variance=0.99, components=12)
    RankRule(variance=0.99, components=12)
    """

    variance: float | None = None
    components: int | None = None

    def __post_init__(self) -> None:
        if self.variance is None and self.components is None:
            raise TwoscaleError("a rank rule needs a variance, a number of components, or both")
        if self.variance is not None and not 0 < self.variance <= 1:
            raise TwoscaleError(f"a retained variance lies in (0, 1], got {self.variance}")
        if self.components is not None and self.components < 1:
            raise TwoscaleError(f"at least one component must be kept, got {self.components}")

    @classmethod
    def of(cls, rule: RankRule | float | Mapping[str, Any]) -> RankRule:
        """Return the rule for a share of variance (a float) or a number of components (an int).

        >>> RankRule.of(0.99), RankRule.of(8)
        (0.99, 8)
        """
        if isinstance(rule, RankRule):
            return rule
        if isinstance(rule, Mapping):
            return cls(**rule)
        if isinstance(rule, Integral) and not isinstance(rule, bool):
            return cls(components=int(rule))
        if isinstance(rule, Real) and not isinstance(rule, bool):
            return cls(variance=float(rule))
        raise TwoscaleError(
            f"a share of variance such as 0.99 or a number of components was expected, got {rule!r}"
        )

    def plain(self) -> float | dict[str, Any]:
        """Return the rule as plain values, for `of`: one number where that is enough."""
        if self.components is None and self.variance is not None:
            return self.variance
        if self.variance is None and self.components is not None:
            return self.components
        return {"variance": self.variance, "components": self.components}

    def __repr__(self) -> str:
        if self.variance is None or self.components is None:
            return repr(self.components if self.variance is None else self.variance)
        return f"RankRule(variance={self.variance}, components={self.components})"

    def reached(self, variances: Tensor, total: Tensor) -> bool:
        """Say whether the computed `variances` (blocks, k) are enough to decide all ranks."""
        if self.components is not None and variances.shape[1] >= self.components:
            return True
        if self.variance is None:
            return False
        return bool((variances.sum(1) >= self.variance * total).all())

    def ranks(self, variances: Tensor, total: Tensor) -> list[int]:
        """Return the rank of each block from its descending `variances` (blocks, k)."""
        available = variances.shape[1]
        if self.variance is None:
            return [min(self.components or available, available)] * len(variances)
        cumulative = variances.double().cumsum(1)
        short = cumulative < (self.variance * total[:, None]) * (1 - 1e-12)
        ranks = (short.sum(1) + 1).clamp(max=min(available, self.components or available))
        return [int(k) for k in ranks]


@dataclass(frozen=True)
class Components:
    """Leading principal directions of every block, padded to the largest rank."""

    vectors: Tensor  # (blocks, features, k), orthonormal columns
    variances: Tensor  # (blocks, k), float64, descending
    ranks: list[int]


class Blocks:
    """Standardised blocks of fields, as the solvers see them.

    `of(blocks)` returns the data of some blocks as a source of chunks (blocks, batch, features),
    which are made anew on each pass.
    """

    def __init__(
        self, of: Callable[[slice], FieldSource], *, samples: int, statistics: Statistics
    ) -> None:
        self.of = of
        self.samples = samples
        self.count, self.features = statistics.mean.shape
        self.varying = statistics.varying
        self.total = statistics.total
        self.device = statistics.mean.device
        self.max_rank = min(samples, self.features)

    def groups(self) -> Iterator[tuple[slice, FieldSource]]:
        """Yield groups of blocks, each with its standardised data.

        The data of a group are held in memory where they are not too large. Otherwise they are read
        again on each pass.
        """
        size = 4 * self.samples * self.features
        most = _DATA_BYTES_CUDA if self.device.type == "cuda" else _DATA_BYTES
        if size > most:  # then each pass shall be for as many blocks as their bases allow
            for part in slices(self.count, max(1, _GRAM_BYTES // (_BASIS_BYTES * self.features))):
                yield part, self.of(part)
            return
        for part in slices(self.count, most // size):
            yield part, held(self.of(part), axis=1)


def full(blocks: Blocks, rule: RankRule, *, seed: int) -> Components:
    """Return components by the eigendecomposition of XᵀX or XXᵀ, whichever is smaller.

    In double precision its directions are closer than those of a singular value decomposition in
    single precision, and take less time. Each block is decomposed by one thread, so that they are
    the same on any number of threads: the last digits of the codes decide where a training ends,
    which can be 1e-3 apart in the predictions.
    """
    if blocks.device.type == "cuda":
        return covariance(blocks, rule, seed=seed)
    vectors, variances = [], []
    decomposition = 4 * 8 * min(blocks.samples, blocks.features) ** 2  # bytes of some matrices
    threads = min(torch.get_num_threads(), _GRAM_BYTES // max(decomposition, 1))
    workers = threads if threads > 1 else 0
    with one_thread():
        for part, data in blocks.groups():
            whole = torch.cat(list(data.chunks()), 1)
            work = zip(whole, blocks.total[part].split(1), strict=True)
            decompose = partial(_decompose, rule=rule)
            for spectrum, basis in prefetch(decompose, work, workers=workers):
                vectors.append(basis)
                variances.append(spectrum)
            del data, whole, work  # before the next group is read
    return _select(vectors, variances, blocks, rule)


def covariance(blocks: Blocks, rule: RankRule, *, seed: int) -> Components:
    """Return components by an eigendecomposition of each block's covariance; one pass per group.

    Blocks are taken in groups whose covariance matrices fit in one GiB.
    """
    group = max(1, _GRAM_BYTES // (8 * blocks.features**2))
    vectors, variances = [], []
    for part in slices(blocks.count, group):
        gram = total(_gram, blocks.of(part))[0].div_(blocks.samples)
        for k, matrix in enumerate(gram, part.start):
            with one_thread():  # also for the digits: they do not depend on threads then
                values, basis = torch.linalg.eigh(matrix)
            values, basis = values.flip(0).clamp_min(0), basis.flip(1)
            keep = rule.ranks(values[None], blocks.total[k : k + 1])
            vectors.append(basis[:, : keep[0]].clone())
            variances.append(values)
    return _select(vectors, variances, blocks, rule)


def randomized(blocks: Blocks, rule: RankRule, *, seed: int) -> Components:
    """Return components by randomised subspace iteration, a group of blocks together.

    Halko, Martinsson, Tropp (2011): start from Gaussian directions, apply the covariance
    `1 + POWER_ITERATIONS` times with re-orthonormalisation, then solve the small projected
    problem. For a variance threshold the rank starts at 16 and grows by half until every block of
    the group reaches it.
    """
    vectors: list[Tensor] = []
    variances: list[Tensor] = []
    for part, data in blocks.groups():
        generator = torch.Generator().manual_seed(seed)  # the same start for every block
        rank = FIRST_RANK if rule.variance is not None else rule.components or FIRST_RANK
        while True:
            rank = min(rank, rule.components or rank, blocks.max_rank)
            basis, found = _subspace_iteration(blocks, part, data, rank, generator)
            if rank == blocks.max_rank or rule.reached(found, blocks.total[part]):
                break
            rank = int(rank * RANK_GROWTH)
        vectors += list(basis)
        variances += list(found)
        del data  # before the next group is read
    longest = max(map(len, variances))
    padded = [torch.nn.functional.pad(one, (0, longest - len(one))) for one in variances]
    return _select(vectors, padded, blocks, rule)


SOLVERS = {"full": full, "covariance": covariance, "randomized": randomized}


def _decompose(block: tuple[Tensor, Tensor], rule: RankRule) -> tuple[Tensor, Tensor]:
    """Return the variances and the wanted directions (features, k) of a block on one thread.

    A block is its data (samples, features) and its total variance.
    """
    data, total = block[0].double(), block[1]
    samples, features = data.shape
    gram = data.mT @ data if features <= samples else data @ data.mT
    values, basis = torch.linalg.eigh(gram.div_(samples))
    values, basis = values.flip(0).clamp_min(0), basis.flip(1)
    basis = basis[:, : rule.ranks(values[None], total)[0]]
    if features <= samples:
        return values, basis.clone()
    # Orthonormal even where nothing but rounding is left of the data.
    return values, torch.linalg.qr(data.mT @ basis).Q


def _subspace_iteration(
    blocks: Blocks,
    part: slice,
    data: FieldSource,
    rank: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Return vectors (blocks, features, rank) and variances (blocks, rank) of some blocks."""
    count = part.stop - part.start
    width = min(rank + OVERSAMPLING, blocks.max_rank)
    # Drawn on the CPU, so that every device sees the same numbers.
    start = torch.randn(blocks.features, width, generator=generator)
    basis = start.to(blocks.device).expand(count, -1, -1)
    for _ in range(1 + POWER_ITERATIONS):
        (image,) = total(partial(_image, basis=basis), data)
        with one_thread():
            basis = torch.linalg.qr(image.mT / blocks.samples).Q
    (projected,) = total(partial(_projected, basis=basis), data)
    with one_thread():
        values, rotation = torch.linalg.eigh(projected / blocks.samples)
    values, rotation = values.flip(1)[:, :rank].clamp_min(0), rotation.flip(2)[..., :rank]
    return torch.bmm(basis, rotation.to(basis.dtype)), values


def _image(chunks: Iterator[Tensor], basis: Tensor) -> Tensors:
    """Return the transpose of XᵀX B, for a basis B (blocks, features, width)."""
    image = torch.zeros_like(basis.mT, memory_format=torch.contiguous_format)
    for rows in chain.from_iterable(map(_rows, chunks)):
        image.baddbmm_(torch.bmm(rows, basis).mT, rows)
    return (image,)


def _projected(chunks: Iterator[Tensor], basis: Tensor) -> Tensors:
    """Return (XB)ᵀ XB (blocks, width, width) in double precision."""
    count, _, width = basis.shape
    projected = torch.zeros(count, width, width, dtype=torch.float64, device=basis.device)
    for rows in chain.from_iterable(map(_rows, chunks)):
        scores = torch.bmm(rows, basis)
        projected += torch.bmm(scores.mT, scores).double()
    return (projected,)


def _gram(chunks: Iterator[Tensor]) -> Tensors:
    """Return XᵀX (blocks, features, features), sums of products of a chunk in double precision."""
    first = next(chunks)
    count, _, features = first.shape
    gram = torch.zeros(count, features, features, dtype=torch.float64, device=first.device)
    for chunk in chain([first], chunks):
        gram += torch.bmm(chunk.mT, chunk)
    return (gram,)


def _rows(chunk: Tensor) -> Sequence[Tensor]:
    """Return parts of a chunk (blocks, batch, features): few rows on a CPU, to stay cached."""
    return [chunk] if chunk.is_cuda else chunk.split(_ROWS, 1)


def _select(
    vectors: list[Tensor], variances: list[Tensor], blocks: Blocks, rule: RankRule
) -> Components:
    """Cut each block to its rank, fix the sign, and pad all to the largest rank."""
    spectra = torch.stack(variances)
    ranks = rule.ranks(spectra, blocks.total)
    padded = vectors[0].new_zeros(blocks.count, blocks.features, max(ranks))
    kept = torch.zeros(blocks.count, max(ranks), dtype=torch.float64, device=blocks.device)
    for k, rank in enumerate(ranks):
        padded[k, :, :rank] = vectors[k][:, :rank]
        kept[k, :rank] = spectra[k, :rank]
    # Exactly zero where a feature never varies: a rounding error there would be decoded with
    # scale 1, far above the field's own, and the next stage of a chain would fit it.
    padded.mul_(_signs(padded)).masked_fill_(~blocks.varying[..., None], 0)
    return Components(padded.float(), kept, ranks)


def _signs(bases: Tensor) -> Tensor:
    """Return the signs (blocks, 1, k) that make each column's largest entry positive.

    Fits agree then.
    """
    rows = bases.abs().argmax(1, keepdim=True)
    signs = torch.sign(bases.gather(1, rows))
    return torch.where(signs == 0, torch.ones_like(signs), signs)
