"""What a training is given: pairs of codes, the part of them that a process holds, and a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod

import torch
from torch import Tensor, nn

from twoscale.domain.symmetries import IDENTITY, Group
from twoscale.errors import TwoscaleError, unknown_name
from twoscale.fields.source import ChangedSource, FieldSource, SampleShape, Shape, slices
from twoscale.runtime import processes
from twoscale.runtime.memory import release_memory
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.threads import prefetch
from twoscale.training.plan import Plan

Loss = Callable[[Tensor, Tensor], Tensor]
ValidationLoss = Callable[[], Tensor | float]

_AHEAD = 2  # ranges that are read before they are needed
_AHEAD_BYTES = 2**26  # of the largest range that is read before it is needed


@dataclass(frozen=True)
class CodePairs:
    """What a predictor learns: input codes and target codes, with the sample on the first axis.

    With a `group` they are those of all images of the samples: under its first symmetry, then its
    second, and so on. A predictor that reads fields gets the inputs of the samples only and makes
    the images itself. If several processes train together, they are those of this one's `shard`.

    Inputs are on the training device. Targets too large for it may stay in host memory: they are
    then sent there one group of minibatches at a time. On a CPU both may be mapped from files of
    `scratch`, which also makes what is derived from them.
    """

    inputs: Tensor
    targets: Tensor
    group: Group = field(default=IDENTITY, kw_only=True)
    shard: Shard | None = field(default=None, kw_only=True)
    scratch: Scratch = field(default=IN_MEMORY, kw_only=True)

    def __len__(self) -> int:
        return len(self.inputs)

    def double(self) -> CodePairs:
        """Return the same in double precision, in memory."""
        return CodePairs(self.inputs.double(), self.targets.double(), group=self.group)

    def parts(self, values: int = 0) -> Iterator[slice]:
        """Yield the samples to compute with at once: all in memory, some where they are on disk.

        `values` is the size of what is computed of a sample, if that is longer than the pair.
        """
        longest = max(values, self.inputs[0].numel(), self.targets[0].numel())
        for part in slices(len(self), self.scratch.rows(len(self), longest)):
            yield part
            if self.scratch.on_disk:
                release_memory()

    def mean(self, value: Callable[[slice], Tensor]) -> Tensor:
        """Return the mean over all samples of a value that is itself a mean over some of them."""
        means = (value(part) * ((part.stop - part.start) / len(self)) for part in self.parts())
        return reduce(torch.add, means)


@dataclass(frozen=True)
class Shard:
    """The samples that a process holds: part `rank` of `size` consecutive parts of all `samples`.

    The parts differ by at most one sample. Of several images of each sample, those under the first
    symmetry come first, then those under the second, and so on.
    """

    samples: int
    rank: int
    size: int

    @property
    def start(self) -> int:
        """Return the first sample that this process holds."""
        return self.rank * self.samples // self.size

    @property
    def stop(self) -> int:
        """Return the sample after its last one."""
        return (self.rank + 1) * self.samples // self.size

    @property
    def own(self) -> int:
        """Return the number of samples that this process holds."""
        return self.stop - self.start

    def everywhere(self, rows: int) -> int:
        """Return the number of images in all processes, if this one holds `rows` of them."""
        return rows // self.own * self.samples

    def holds(self, images: Tensor) -> Tensor:
        """Say which images, numbered among those of all samples, this process holds."""
        samples = images % self.samples
        return (samples >= self.start) & (samples < self.stop)

    def places(self, images: Tensor) -> Tensor:
        """Return the places of images among those that this process holds."""
        symmetries, samples = images // self.samples, images % self.samples
        return symmetries * self.own + samples - self.start

    def part(self, pairs: CodePairs) -> CodePairs:
        """Return this process's part of other pairs than those of training."""
        others = replace(self, samples=len(pairs))
        rows = slice(others.start, others.stop)
        return CodePairs(pairs.inputs[rows], pairs.targets[rows])

    def source(self, fields: FieldSource) -> FieldSource:
        """Return the fields of the samples that this process holds."""
        return _ShardSource(fields, self)

    def average(self, mean: Tensor, rows: int) -> Tensor:
        """Return the mean over all processes; `mean` is that over the `rows` of this one."""
        sums = torch.cat([mean.flatten().double() * rows, mean.new_full((1,), rows).double()])
        processes.add_up(sums)
        return (sums[:-1] / sums[-1]).to(mean.dtype).reshape(mean.shape)


def shard_of(samples: int, description: str) -> Shard | None:
    """Return this process's shard of the training samples; None if it trains alone.

    All processes must give the same `description` of what they fit.
    """
    size = processes.count()
    if size == 1:
        return None
    processes.check_same(f"{samples} samples, {description}")
    if samples < size:
        raise TwoscaleError(
            f"{size} processes train together, and there are {samples} training samples: start at "
            "most as many processes as there are samples"
        )
    return Shard(samples, processes.rank(), size)


def mean_over(shard: Shard | None, values: Tensor) -> Tensor:
    """Return the mean over the first axis, of all processes that hold a shard."""
    mean = values.mean(0)
    return mean if shard is None else shard.average(mean, len(values))


def variance_over(shard: Shard | None, values: Tensor) -> Tensor:
    """Return the variance over the first axis, of all processes that hold a shard."""
    if shard is None:
        return values.var(0, unbiased=False)
    return mean_over(shard, (values - mean_over(shard, values)).square())


class _ShardSource(ChangedSource):
    """The fields of a shard's samples. A pass reads only ranges that have some of them."""

    def __init__(self, source: FieldSource, shard: Shard) -> None:
        self.source = source
        self.shard = shard

    @property
    def shape(self) -> Shape:
        sides: SampleShape = self.source.shape[1:]
        return (self.shard.own, *sides)

    def ranges(self) -> list[slice]:
        """Return the ranges of all samples that have some of this process."""
        start, stop = self.shard.start, self.shard.stop
        return [one for one in super().ranges() if one.start < stop and one.stop > start]

    def chunks(self) -> Iterator[Tensor]:
        ranges, sides = self.ranges(), self.shape[1:]
        if 4 * prod(sides) * max(one.stop - one.start for one in ranges) > _AHEAD_BYTES:
            for one in ranges:
                yield from self.read(one)
            return
        for chunks in prefetch(lambda one: list(self.read(one)), ranges, workers=_AHEAD):
            yield from chunks

    def _changed(self, chunks: Iterator[Tensor], start: int) -> Iterator[Tensor]:
        for chunk in chunks:
            own = chunk[max(0, self.shard.start - start) : max(0, self.shard.stop - start)]
            start += len(chunk)
            if len(own):
                yield own

    def to(self, device: torch.device) -> _ShardSource:
        return _ShardSource(self.source.to(device), self.shard)


@dataclass(frozen=True)
class Task:
    """A network, the pairs it learns, its loss and its plan.

    If the training pairs are a shard, the loss must be a mean over samples.
    """

    network: nn.Module
    training: CodePairs
    validation: CodePairs
    loss: Loss
    plan: Plan
    seed: int = 0
    validate: ValidationLoss | None = None  # gives the validation loss; by default the mean `loss`
    per_epoch: int | None = None  # pairs drawn for each epoch; by default all
    extra_history: dict[str, list[float]] = field(default_factory=dict)  # per epoch, by `validate`

    @property
    def shard(self) -> Shard | None:
        """Return whose pairs these are, if several processes train together."""
        return self.training.shard


@torch.no_grad()
def mean_loss(
    network: nn.Module, loss: Loss, pairs: CodePairs, batch: int, *, shared: bool = False
) -> Tensor:
    """Return the mean of a loss over all pairs, computed `batch` pairs at a time.

    If it is `shared`, the pairs of all processes count, of which there may be none in this one.
    """
    total = torch.zeros((), dtype=torch.float64, device=pairs.inputs.device)
    for part in slices(len(pairs), batch):
        inputs, targets = pairs.inputs[part], pairs.targets[part]
        total += loss(network(inputs), targets).double() * len(inputs)
    if not shared:
        return total / len(pairs)
    sums = processes.add_up(torch.stack([total, torch.full_like(total, len(pairs))]))
    return sums[0] / sums[1]


_VARIANCE_FLOOR = 1e-8
_SMALLEST = 1e-12  # norm of a field, in the decoder's unit


def code_weights(objective: str, block_sizes: Sequence[int], variance: Tensor) -> Tensor:
    """Return the weight (code_size,) of each code coordinate's mean squared error.

    `block_sizes` are the code sizes of the representation's stages, `variance` (code_size,) the
    variance of the training codes.

    - vector: plain mean over all coordinates;
    - block-balanced: mean within each stage, then the mean over stages (1/2 + 1/2 for two);
    - score-normalised: block-balanced after dividing squared errors by the code variance;
    - field: plain mean as well, but over coordinates in which it is that of the decoded field.
    """
    if objective not in OBJECTIVES:
        raise unknown_name("objective", objective, OBJECTIVES)
    size = sum(block_sizes)
    if objective in ("vector", "field"):
        return torch.full_like(variance, 1.0 / size)
    balanced = torch.cat(
        [variance.new_full((k,), 1.0 / (len(block_sizes) * k)) for k in block_sizes]
    )
    if objective == "block-balanced":
        return balanced
    return balanced / variance.clamp_min(_VARIANCE_FLOOR)


OBJECTIVES = ("vector", "block-balanced", "score-normalised", "field")


class RelativeLoss:
    """The mean over a batch of ||predicted field - true field|| / ||true field||.

    A true field of zeros adds nothing.
    `metric` turns code errors into coordinates with the fields' distances: a matrix (code,
    coordinates), or a factor for each code. The last column of `true` holds the norms of the true
    fields, the others their codes.
    """

    def __init__(self, metric: Tensor) -> None:
        self.metric = metric

    def __call__(self, predicted: Tensor, true: Tensor) -> Tensor:
        error = predicted - true[:, :-1]
        error = error @ self.metric if self.metric.ndim == 2 else error * self.metric
        sizes = true[:, -1]
        errors = error.norm(dim=1) / sizes.clamp_min(_SMALLEST)
        return torch.where(sizes > _SMALLEST, errors, 0.0).mean()


class CodeLoss:
    """The loss sum_i w_i mean_batch (predicted_i - true_i)^2."""

    def __init__(self, weights: Tensor) -> None:
        self.weights = weights

    def __call__(self, predicted: Tensor, true: Tensor) -> Tensor:
        return (predicted - true).square().mean(0) @ self.weights


def mean_square(predicted: Tensor, true: Tensor) -> Tensor:
    """Return the mean squared error over all values of a batch."""
    return (predicted - true).square().mean()
