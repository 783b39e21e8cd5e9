"""One training in several processes: each computes the samples of a minibatch that it holds.

The minibatches and their order are those of one process. Gradients are added up, weighted by the
numbers of samples, so that steps differ from those of one process by rounding only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.source import ChangedSource, FieldSource, SampleShape, Shape
from twoscale.runtime import processes
from twoscale.runtime.threads import prefetch
from twoscale.training.epochs import Epochs
from twoscale.training.learner import ModuleLearner
from twoscale.training.losses import Loss
from twoscale.training.plan import History, Pairs, Plan

_AHEAD = 2  # ranges that are read before they are needed
_AHEAD_BYTES = 2**26  # of the largest range that is read before it is needed


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

    def part(self, pairs: Pairs) -> Pairs:
        """Return this process's part of other pairs than those of training."""
        others = replace(self, samples=len(pairs))
        rows = slice(others.start, others.stop)
        return Pairs(pairs.inputs[rows], pairs.targets[rows])

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


def begin_together(network: nn.Module, finished: History | None) -> History | None:
    """Give all processes the first one's weights and, if it was trained before, the history."""
    for value in network.state_dict().values():
        processes.copy_from_first(value)
    return processes.from_first(finished)


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


class SharedLearner(ModuleLearner):
    """One module whose gradients are added up over the processes."""

    def __init__(self, network: nn.Module, loss: Loss, plan: Plan, device: torch.device) -> None:
        super().__init__(network, loss, plan, device)
        self.trained = [one for one in self._parameters() if one.requires_grad]

    def share_step(self, inputs: Tensor, targets: Tensor, batch: int) -> None:
        """Take a step on a minibatch of `batch` samples, given those that this process holds.

        The loss must be a mean over samples. There may be no samples here.
        """
        self.optimiser.zero_grad(set_to_none=True)
        loss = torch.zeros_like(self.total)
        if len(inputs):
            value = self.loss(self.network(inputs), targets) * len(inputs)
            (value / batch).backward()
            loss += value.detach()
        for one in self.trained:
            if one.grad is None:
                one.grad = torch.zeros_like(one)
        gradients = [one.grad for one in self.trained if one.grad is not None]
        sums = torch.cat([*(one.flatten() for one in gradients), loss])
        processes.add_up(sums)
        parts = sums.split([*(one.numel() for one in gradients), 1])
        for gradient, part in zip(gradients, parts[:-1], strict=True):
            gradient.copy_(part.view_as(gradient))
        self._take_step()
        self.total.add_(parts[-1])


class SharedEpochs(Epochs):
    """The minibatches of all processes, of which this one computes the samples that it holds."""

    def __init__(
        self, learner: SharedLearner, training: Pairs, plan: Plan, shard: Shard, samples: int | None
    ) -> None:
        everything = shard.everywhere(training.inputs.shape[1])
        super().__init__(learner, training, plan, samples or everything)
        self.shared = learner
        self.shard = shard
        self.held = torch.empty(0, dtype=torch.bool)  # of the epoch's pairs in their order
        self.places: list[int] = []  # number of pairs held before each of them, and of all

    def _take_order(self, flat: Tensor) -> None:
        self.held = self.shard.holds(flat)
        self.places = [0, *self.held.cumsum(0).tolist()]
        super()._take_order(self.shard.places(flat[self.held]))

    def _eager(self, part: slice, batch: int) -> None:
        own = slice(self.places[part.start], self.places[part.stop])
        counts = self.held[part].unflatten(0, (-1, batch)).sum(1).tolist()
        inputs, targets = self._gathered(own)
        for one in zip(inputs.split(counts), targets.split(counts), strict=True):
            self.shared.share_step(*one, batch)
