"""What a training is told and what it leaves: plan, data, schedule, history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


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
    on_fields: bool = False  # a network on whole fields: tensor cores, convolutions tried out


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


class Plateau:
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
