"""One training loop for everything that is trained: resident data, plateau schedule, best weights.

On CUDA whole groups of optimiser steps are captured once and replayed, so that small networks are
not bound by kernel launches; on a CPU small networks run on one thread, where handing work to
others costs more than the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.objectives import Loss
from twoscale.progress import Progress
from twoscale.source import slices
from twoscale.threads import one_thread

_GROUP_STEPS = 50
_GROUP_VALUES = 2**26  # at most this many numbers in a group of minibatches: 256 MiB of float32


@dataclass(frozen=True)
class Plan:
    """How to train: Adam with L2 weight decay, the rate halved on a plateau of validation loss."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    patience: int
    evaluation_batch: int
    early_stop: int | None = None
    small: bool = False  # steps so small that one CPU thread is fastest


@dataclass
class History:
    """Per-epoch record; `best_epoch` counts from 0 and names the weights that were kept."""

    training_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    best_epoch: int = -1

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Pairs:
    """Inputs and targets with the sample on the first axis.

    Inputs are on the training device. Targets too large for it may stay in host memory: they are
    then sent there one group of minibatches at a time.
    """

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.inputs)


def train(
    network: nn.Module,
    training: Pairs,
    validation: Pairs,
    loss: Loss,
    plan: Plan,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    name: str = "training",
    judge: Callable[[], float] | None = None,
    begin_epoch: Callable[[int], None] | None = None,
    remark: Callable[[], str] | None = None,
) -> History:
    """Train `network` in place and leave it with the weights of the best validation loss.

    `judge` gives the validation loss where it is something else than the mean of `loss`;
    `begin_epoch` is called with each epoch's number, to change tensors that the loss reads;
    `remark` gives the text beside the progress bar.
    """
    history = History()
    schedule = _Plateau(plan)
    judge = judge or (lambda: _mean_loss(network, validation, loss, plan))
    best = {key: value.clone() for key, value in network.state_dict().items()}
    shuffles = torch.Generator().manual_seed(seed)
    with _repeatable(plan.small):
        steps = _make_steps(network, training, loss, plan)
        for epoch in range(plan.epochs):
            if begin_epoch:
                begin_epoch(epoch)
            order = torch.randperm(len(training), generator=shuffles)
            history.training_loss.append(steps.epoch(order))
            history.learning_rate.append(schedule.rate)
            history.validation_loss.append(judge())
            if schedule.update(history.validation_loss[-1]):
                history.best_epoch = epoch
                for key, value in network.state_dict().items():
                    best[key].copy_(value)
            steps.set_rate(schedule.rate)
            if progress:
                text = remark() if remark else f"validation loss {schedule.best:.3g}"
                progress(name, epoch + 1, plan.epochs, text)
            if schedule.exhausted:
                break
    if history.best_epoch < 0:
        raise TwoscaleError(
            f"{name} diverged: no validation loss was finite; try a smaller learning_rate"
        )
    network.load_state_dict(best)
    return history


class _Plateau:
    """Halves the rate after `patience` epochs without a better validation loss."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rate = plan.learning_rate
        self.best = float("inf")
        self.waited = 0  # epochs since the best loss or the last halving
        self.stale = 0  # epochs since the best loss

    def update(self, loss: float) -> bool:
        """Take an epoch's validation loss; return whether it is the best so far."""
        if loss < self.best:
            self.best = loss
            self.waited = self.stale = 0
            return True
        self.waited += 1
        self.stale += 1
        if self.waited >= self.plan.patience:
            self.rate *= 0.5
            self.waited = 0
        return False

    @property
    def exhausted(self) -> bool:
        return self.plan.early_stop is not None and self.stale >= self.plan.early_stop


class _Steps:
    """Optimiser steps over shuffled minibatches.

    A group of consecutive minibatches is gathered at once and then stepped through in slices.
    """

    def __init__(self, network: nn.Module, training: Pairs, loss: Loss, plan: Plan) -> None:
        self.network = network
        self.training = training
        self.loss = loss
        self.plan = plan
        self.device = training.inputs.device
        cuda = self.device.type == "cuda"
        rate = torch.tensor(plan.learning_rate, device=self.device) if cuda else plan.learning_rate
        self.optimiser = torch.optim.Adam(
            network.parameters(),
            lr=rate,
            weight_decay=plan.weight_decay,
            fused=True,
            capturable=cuda,
        )
        self.total = torch.zeros((), device=self.device)
        values = plan.batch_size * (training.inputs[0].numel() + training.targets[0].numel())
        self.group = max(1, min(_GROUP_STEPS, _GROUP_VALUES // values))
        self.orders: dict[torch.device, Tensor] = {}

    def set_rate(self, rate: float) -> None:
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def epoch(self, order: Tensor) -> float:
        """Run one epoch in the given order; return the mean training loss."""
        for values in (self.training.inputs, self.training.targets):
            self.orders[values.device] = order.to(values.device)
        self.total.zero_()
        for part in slices(len(order), self.group * self.plan.batch_size):
            self._run(part)
        return float(self.total) / len(order)

    def _run(self, part: slice) -> None:
        """Step through a part of the epoch's order, minibatch by minibatch."""
        pairs = (self.training.inputs, self.training.targets)
        inputs, targets = (values[self.orders[values.device][part]] for values in pairs)
        self._steps(inputs, targets.to(self.device))

    def _steps(self, inputs: Tensor, targets: Tensor) -> None:
        for part in slices(len(inputs), self.plan.batch_size):
            value = self.loss(self.network(inputs[part]), targets[part])
            self.optimiser.zero_grad(set_to_none=True)
            value.backward()
            self.optimiser.step()
            self.total.add_(value.detach(), alpha=len(inputs[part]))


class _GraphSteps(_Steps):
    """The same steps, captured as CUDA graphs and replayed; arithmetic and order are unchanged.

    A graph steps through a fixed buffer that each replay finds filled with the next samples. One
    graph serves full groups, one the whole minibatches of an epoch's last group; a last, smaller
    minibatch is stepped without a graph.
    """

    def __init__(self, network: nn.Module, training: Pairs, loss: Loss, plan: Plan) -> None:
        super().__init__(network, training, loss, plan)
        whole = len(training) // plan.batch_size
        longest = min(self.group, whole)
        samples = longest * plan.batch_size
        self.inputs = training.inputs[:samples].clone()
        self.targets = training.targets[:samples].to(self.device, copy=True)
        self.staging: Tensor | None = None  # where targets from host memory are gathered
        if not training.targets.is_cuda:
            self.staging = torch.empty_like(training.targets[:samples], pin_memory=True)
        self.sent = torch.cuda.Event()
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        if whole:
            self._warm_up()
            for steps in {longest, whole % longest} - {0}:
                self.graphs[steps * plan.batch_size] = self._capture(steps * plan.batch_size)

    def _warm_up(self) -> None:
        """Run a few steps on a side stream, as capture requires, and undo them."""
        weights = {key: value.clone() for key, value in self.network.state_dict().items()}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._steps(*self._buffers(self.plan.batch_size))
        torch.cuda.current_stream().wait_stream(stream)
        self.network.load_state_dict(weights)
        for state in self.optimiser.state.values():
            for value in state.values():
                value.zero_()

    def _buffers(self, samples: int) -> tuple[Tensor, Tensor]:
        return self.inputs[:samples], self.targets[:samples]

    def _capture(self, samples: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._steps(*self._buffers(samples))
        return graph

    def _run(self, part: slice) -> None:
        samples = part.stop - part.start
        samples -= samples % self.plan.batch_size
        whole = slice(part.start, part.start + samples)
        if samples:
            inputs, targets = self._buffers(samples)
            self._gather(self.training.inputs, whole, inputs)
            if self.staging is None:
                self._gather(self.training.targets, whole, targets)
            else:  # gathered by the CPU while the GPU is at the previous group
                self.sent.synchronize()
                self._gather(self.training.targets, whole, self.staging[:samples])
                targets.copy_(self.staging[:samples], non_blocking=True)
                self.sent.record()
            self.graphs[samples].replay()
        if whole.stop < part.stop:
            super()._run(slice(whole.stop, part.stop))

    def _gather(self, values: Tensor, part: slice, out: Tensor) -> None:
        torch.index_select(values, 0, self.orders[values.device][part], out=out)


def _make_steps(network: nn.Module, training: Pairs, loss: Loss, plan: Plan) -> _Steps:
    kind = _GraphSteps if training.inputs.is_cuda else _Steps
    return kind(network, training, loss, plan)


@torch.no_grad()
def _mean_loss(network: nn.Module, pairs: Pairs, loss: Loss, plan: Plan) -> float:
    total = torch.zeros((), dtype=torch.float64, device=pairs.inputs.device)
    for part in slices(len(pairs), plan.evaluation_batch):
        inputs, targets = pairs.inputs[part], pairs.targets[part]
        total += loss(network(inputs), targets).double() * len(inputs)
    return float(total) / len(pairs)


@contextmanager
def _repeatable(small: bool) -> Iterator[None]:
    """Deterministic convolutions on CUDA; one CPU thread for small steps."""
    flags = torch.backends.cudnn
    before = (flags.deterministic, flags.benchmark)
    try:
        flags.deterministic, flags.benchmark = True, False
        with one_thread() if small else nullcontext():
            yield
    finally:
        flags.deterministic, flags.benchmark = before
