"""Epochs of shuffled minibatches: gathered in groups, stepped through one by one or replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from twoscale.fields.source import slices
from twoscale.runtime.cuda_graphs import exclusive_stream, record, warm_up
from twoscale.training.learner import Learner, SharedLearner
from twoscale.training.plan import Plan
from twoscale.training.task import CodePairs

_GROUP_STEPS = 50
_CYCLE_STEPS = 10  # where the rate is another for each group
_GROUP_VALUES = 2**26  # at most this many numbers in a group of minibatches: 256 MiB of float32


class Epochs:
    """Optimiser steps over shuffled minibatches of every member, (members, samples, ...).

    A group of consecutive minibatches is gathered at once and then stepped through in slices. An
    epoch takes `samples` of the pairs, by default all.
    """

    def __init__(
        self, learner: Learner, training: CodePairs, plan: Plan, samples: int | None = None
    ) -> None:
        self.learner = learner
        self.inputs, self.targets = training.inputs.flatten(0, 1), training.targets.flatten(0, 1)
        self.members, self.pairs = training.inputs.shape[:2]
        self.samples = samples or self.pairs
        self.batch = min(plan.batch_size, self.samples)
        self.device = training.inputs.device
        step = self.members * self.batch
        values = step * (self.inputs[0].numel() + self.targets[0].numel())
        most = _CYCLE_STEPS if plan.one_cycle else _GROUP_STEPS
        self.group = max(1, min(most, _GROUP_VALUES // values))
        self.share = 1.0  # of the latest epoch that was run
        self.orders: dict[torch.device, Tensor] = {}
        self.buffers: list[Tensor] = []

    def run(
        self,
        order: Tensor,
        rate: Callable[[float], None] | None = None,
        *,
        done: int = 0,
        between: Callable[[int], None] | None = None,
        over: Callable[[], bool] | None = None,
    ) -> list[float]:
        """Run one epoch in the given order (members, samples); return the mean training losses.

        `rate` is called before each group, to set the learning rates, with the share of the epoch
        at the group's middle. `between` is called after each group with the number of groups done.
        The first `done` groups are skipped: an earlier process did them. The epoch ends as soon as
        `over` says so; it is asked after each piece of a group, and `rate` is called before each.
        """
        rows = order + self.pairs * torch.arange(self.members)[:, None]
        whole = self.samples - self.samples % self.batch
        steps = rows[:, :whole].unflatten(1, (-1, self.batch)).transpose(0, 1)
        flat = torch.cat([steps.flatten(), rows[:, whole:].flatten()])
        self._take_order(flat)
        if not done:
            self.learner.total.zero_()
        step = self.members * self.batch
        for number, part in enumerate(slices(self.members * whole, self.group * step), 1):
            if number <= done:
                continue
            for piece in self._pieces(part) if over else (part,):
                if rate:
                    rate((part.start + part.stop) / (2 * len(flat)))
                self._run(piece, self.batch)
                if over and over():
                    self.share = piece.stop / len(flat)
                    return (self.learner.total / (piece.stop / self.members)).tolist()
            if between:
                between(number)
        if whole < self.samples:
            self._run(slice(self.members * whole, len(flat)), self.samples - whole)
        self.share = 1.0
        return (self.learner.total / self.samples).tolist()

    def _take_order(self, flat: Tensor) -> None:
        """Take the epoch's rows of pairs in their order, step after step."""
        for values in (self.inputs, self.targets):
            self.orders[values.device] = flat.to(values.device)

    def _pieces(self, group: slice) -> Iterable[slice]:
        """Return the pieces of a group that can be run one by one: its steps."""
        step = self.members * self.batch
        return (slice(start, start + step) for start in range(group.start, group.stop, step))

    def _run(self, part: slice, batch: int) -> None:
        """Step through the minibatches of a part of the epoch's order."""
        self.learner.steps(*self._gathered(part), batch)

    def _gathered(self, part: slice) -> tuple[Tensor, Tensor]:
        """Return the inputs and targets of a part of the epoch's order, on the device."""
        rows = part.stop - part.start
        if not self.buffers or len(self.buffers[0]) < rows:  # the same memory for every group
            self.buffers = [torch.empty_like(one[:rows]) for one in (self.inputs, self.targets)]
        inputs, targets = (buffer[:rows] for buffer in self.buffers)
        self._gather(self.inputs, part, inputs)
        self._gather(self.targets, part, targets)
        return inputs, targets.to(self.device)

    def _gather(self, values: Tensor, part: slice, out: Tensor) -> None:
        torch.index_select(values, 0, self.orders[values.device][part], out=out)


class ReplayedEpochs(Epochs):
    """The same steps, captured as CUDA graphs and replayed; arithmetic and order are unchanged.

    A graph steps through a fixed buffer that each replay finds filled with the next samples. One
    graph serves full groups, one the rest of an epoch's whole minibatches; a last, smaller
    minibatch is stepped without a graph.
    """

    def __init__(
        self, learner: Learner, training: CodePairs, plan: Plan, samples: int | None = None
    ) -> None:
        super().__init__(learner, training, plan, samples)
        whole = self.samples // self.batch
        longest = min(self.group, whole)
        self.step_rows = self.members * self.batch
        rows = longest * self.step_rows
        self.input_buffer = self.inputs[:rows].clone()
        self.target_buffer = self.targets[:rows].to(self.device, copy=True)
        self.staging: Tensor | None = None  # where targets from host memory are gathered
        if not self.targets.is_cuda:
            self.staging = torch.empty_like(self.targets[:rows], pin_memory=True)
        self.sent = torch.cuda.Event()
        self._warm_up()
        self.graphs = {
            steps * self.step_rows: self._capture(steps * self.step_rows)
            for steps in {longest, whole % longest} - {0}
        }

    def _buffers(self, rows: int) -> tuple[Tensor, Tensor]:
        return self.input_buffer[:rows], self.target_buffer[:rows]

    def _warm_up(self) -> None:
        """Run a few steps on a side stream, as capture requires, and undo them."""
        weights = [value.clone() for value in self.learner.weights()]
        step = self._buffers(self.step_rows)
        warm_up(lambda: self.learner.steps(*step, self.batch), self.device, times=3)
        for value, before in zip(self.learner.weights(), weights, strict=True):
            value.copy_(before)
        for value in self.learner.moments():
            value.zero_()

    def _capture(self, rows: int) -> torch.cuda.CUDAGraph:
        group = self._buffers(rows)
        return record(lambda: self.learner.steps(*group, self.batch), self.device)[0]

    def _pieces(self, group: slice) -> Iterable[slice]:
        return (group,)  # a graph is replayed as a whole

    def _run(self, part: slice, batch: int) -> None:
        rows = part.stop - part.start
        if rows not in self.graphs:  # the last minibatch
            super()._run(part, batch)
            return
        inputs, targets = self._buffers(rows)
        self._gather(self.inputs, part, inputs)
        if self.staging is None:
            self._gather(self.targets, part, targets)
        else:  # gathered by the CPU while the GPU is at the previous group
            self.sent.synchronize()
            self._gather(self.targets, part, self.staging[:rows])
            targets.copy_(self.staging[:rows], non_blocking=True)
            self.sent.record()
        with exclusive_stream(self.device):
            self.graphs[rows].replay()


class SharedEpochs(Epochs):
    """The minibatches of all processes, of which this one computes the samples that it holds."""

    def __init__(
        self, learner: SharedLearner, training: CodePairs, plan: Plan, samples: int | None = None
    ) -> None:
        assert training.shard is not None
        everything = training.shard.everywhere(training.inputs.shape[1])
        super().__init__(learner, training, plan, samples or everything)
        self.shared = learner
        self.shard = training.shard
        self.held = torch.empty(0, dtype=torch.bool)  # of the epoch's pairs in their order
        self.places: list[int] = []  # number of pairs held before each of them, and of all

    def _take_order(self, flat: Tensor) -> None:
        self.held = self.shard.holds(flat)
        self.places = [0, *self.held.cumsum(0).tolist()]
        super()._take_order(self.shard.places(flat[self.held]))

    def _run(self, part: slice, batch: int) -> None:
        own = slice(self.places[part.start], self.places[part.stop])
        counts = self.held[part].unflatten(0, (-1, batch)).sum(1).tolist()
        inputs, targets = self._gathered(own)
        for one in zip(inputs.split(counts), targets.split(counts), strict=True):
            self.shared.share_step(*one, batch)


def make_epochs(
    learner: Learner, training: CodePairs, plan: Plan, samples: int | None = None
) -> Epochs:
    """Return epochs for the data's device: replayed as CUDA graphs on a GPU."""
    if isinstance(learner, SharedLearner):
        return SharedEpochs(learner, training, plan, samples)
    kind = ReplayedEpochs if training.inputs.is_cuda else Epochs
    return kind(learner, training, plan, samples)
