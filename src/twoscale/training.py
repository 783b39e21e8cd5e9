"""One training loop for everything that is trained: resident data, plateau schedule, best weights.

On CUDA whole groups of optimiser steps are captured once and replayed, so that small networks are
not bound by kernel launches; on a CPU small networks run on one thread, where handing work to
others costs more than the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.objectives import Loss
from twoscale.predictors import MLP
from twoscale.source import slices

Progress = Callable[[str, int, int, str], None]
"""Called as progress(stage, done, total, remark)."""

_GRAPH_STEPS = 50


@dataclass(frozen=True)
class Plan:
    """How to train: Adam with L2 weight decay, the rate halved on a plateau of validation loss."""

    epochs: int
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int = 30
    early_stop: int | None = None
    evaluation_batch: int = 1024


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
    """Inputs and targets with the sample on the first axis, on the training device."""

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
) -> History:
    """Train `network` in place and leave it with the weights of the best validation loss."""
    history = History()
    schedule = _Plateau(plan)
    best = {key: value.clone() for key, value in network.state_dict().items()}
    shuffles = torch.Generator().manual_seed(seed)
    with _repeatable(training.inputs.device, network):
        steps = _make_steps(network, training, loss, plan)
        for epoch in range(plan.epochs):
            order = torch.randperm(len(training), generator=shuffles)
            history.training_loss.append(steps.epoch(order))
            history.learning_rate.append(schedule.rate)
            history.validation_loss.append(_mean_loss(network, validation, loss, plan))
            if schedule.update(history.validation_loss[-1]):
                history.best_epoch = epoch
                for key, value in network.state_dict().items():
                    best[key].copy_(value)
            steps.set_rate(schedule.rate)
            if progress:
                progress(name, epoch + 1, plan.epochs, f"validation loss {schedule.best:.3g}")
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
    """Optimiser steps over shuffled minibatches, run one by one."""

    def __init__(self, network: nn.Module, training: Pairs, loss: Loss, plan: Plan) -> None:
        self.network = network
        self.training = training
        self.loss = loss
        self.plan = plan
        device = training.inputs.device
        cuda = device.type == "cuda"
        rate = torch.tensor(plan.learning_rate, device=device) if cuda else plan.learning_rate
        self.optimiser = torch.optim.Adam(
            network.parameters(),
            lr=rate,
            weight_decay=plan.weight_decay,
            fused=True,
            capturable=cuda,
        )
        self.total = torch.zeros((), device=device)
        self.order = torch.zeros(len(training), dtype=torch.int64, device=device)

    def set_rate(self, rate: float) -> None:
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def epoch(self, order: Tensor) -> float:
        """Run one epoch in the given order; return the mean training loss."""
        self.order.copy_(order)
        self.total.zero_()
        self._run()
        return float(self.total) / len(order)

    def _run(self) -> None:
        for part in slices(len(self.order), self.plan.batch_size):
            self._step(self.order[part])

    def _step(self, index: Tensor) -> None:
        inputs, targets = self.training.inputs[index], self.training.targets[index]
        value = self.loss(self.network(inputs), targets)
        self.optimiser.zero_grad(set_to_none=True)
        value.backward()
        self.optimiser.step()
        self.total += value.detach() * len(index)


class _GraphSteps(_Steps):
    """The same steps, captured as CUDA graphs and replayed; arithmetic and order are unchanged.

    A graph holds several consecutive steps and finds its minibatches through a counter on the
    device. The last, smaller minibatch of an epoch has its own one-step run outside the graphs.
    """

    def __init__(self, network: nn.Module, training: Pairs, loss: Loss, plan: Plan) -> None:
        super().__init__(network, training, loss, plan)
        device = training.inputs.device
        self.whole = len(training) // plan.batch_size
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self.places = torch.arange(plan.batch_size, device=device)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        if self.whole:
            self._warm_up()
            length = min(_GRAPH_STEPS, self.whole)
            for steps in {length, self.whole % length} - {0}:
                self.graphs[steps] = self._capture(steps)

    def _warm_up(self) -> None:
        """Run a few steps on a side stream, as capture requires, and undo them."""
        weights = {key: value.clone() for key, value in self.network.state_dict().items()}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.counter.zero_()
                self._counted_step()
        torch.cuda.current_stream().wait_stream(stream)
        self.network.load_state_dict(weights)
        for state in self.optimiser.state.values():
            for value in state.values():
                value.zero_()

    def _capture(self, steps: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(steps):
                self._counted_step()
        return graph

    def _counted_step(self) -> None:
        self._step(self.order[self.counter * self.plan.batch_size + self.places])
        self.counter += 1

    def _run(self) -> None:
        self.counter.zero_()
        left = self.whole
        while left:
            steps = max(steps for steps in self.graphs if steps <= left)
            self.graphs[steps].replay()
            left -= steps
        rest = self.order[self.whole * self.plan.batch_size :]
        if len(rest):
            self._step(rest)


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
def _repeatable(device: torch.device, network: nn.Module) -> Iterator[None]:
    """Deterministic convolutions on CUDA; one thread for latent networks on a CPU."""
    threads = torch.get_num_threads()
    flags = torch.backends.cudnn
    before = (flags.deterministic, flags.benchmark)
    try:
        flags.deterministic, flags.benchmark = True, False
        if device.type == "cpu" and isinstance(network, MLP):
            torch.set_num_threads(1)
        yield
    finally:
        flags.deterministic, flags.benchmark = before
        torch.set_num_threads(threads)
