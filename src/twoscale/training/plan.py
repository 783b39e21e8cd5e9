"""The plan of a training, its schedule of learning rates, its deadline, its history."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from twoscale.runtime.progress import now


@dataclass(frozen=True)
class Plan:
    """How to train: Adam with L2 weight decay, the rate halved on a plateau of validation loss.

    With `one_cycle` the rate rises during the first tenth of all steps and then falls to zero. If
    there is a deadline, it follows the time instead, where that is ahead of the epochs.
    """

    epochs: int
    batch_size: int  # samples per step
    learning_rate: float
    weight_decay: float
    patience: int  # epochs without a better validation loss before the rate is halved
    evaluation_batch: int  # samples computed together in validation
    early_stop: int | None = None  # epochs without a better validation loss before the end
    small: bool = False  # steps so small that one CPU thread is fastest
    on_fields: bool = False  # a network on whole fields: tensor cores
    tuned: bool = False  # cuDNN first times its algorithms, which takes seconds
    one_cycle: bool = False
    clip: float | None = None  # largest norm of the gradients of one step
    optimiser: str = "adam"  # or muon


@dataclass
class History:
    """Losses and rates per epoch; `best_epoch`, counted from 0, is that of the weights kept."""

    training_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    best_epoch: int = -1
    earlier_seconds: float = field(default=0.0, compare=False)  # in processes that were interrupted
    cut_after: float | None = None  # epochs, if a deadline ended the training before its last one

    def as_dict(self) -> dict[str, Any]:
        optional = ("earlier_seconds", "cut_after")
        return {name: value for name, value in vars(self).items() if value or name not in optional}

    def divergence(self, start: float | None = None) -> Divergence | None:
        """Return how the training diverged, or None if it did not.

        It diverged if the validation loss rose to ten times its `start` (by default the loss of
        the first epoch), and neither the training nor the validation loss ended below half of it.
        Noise does not rise that far, and a network that overfits has a small training loss.
        """
        losses = [loss if math.isfinite(loss) else math.inf for loss in self.validation_loss]
        first = losses[0] if start is None else start
        high = [epoch for epoch, loss in enumerate(losses, 1) if loss >= _RISEN * first]
        if not high or first == 0 or not math.isfinite(first):
            return None
        ends = (self.training_loss[-1], self.validation_loss[-1])
        if any(end < _BACK * first for end in ends):
            return None
        return Divergence(first, max(losses), high[0])


@dataclass(frozen=True)
class Divergence:
    """The validation loss at the start, its highest value, and the epoch of its rise, from 1."""

    start: float
    highest: float
    epoch: int


class Schedule(ABC):
    """The learning rate from step to step, and when to end."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.best = float("inf")
        self.stale = 0  # epochs since the best loss

    @abstractmethod
    def rate(self, epochs: float, time: float = 0.0) -> float:
        """Return the rate after some epochs; a fraction is a part of an epoch's steps.

        `time` is the share of the time before a deadline that is used.
        """

    def update(self, loss: float) -> bool:
        """Take an epoch's validation loss; return whether it is the best so far."""
        if loss < self.best:
            self.best = loss
            self.stale = 0
            return True
        self.stale += 1
        return False

    def state(self) -> dict[str, Any]:
        """Return what the schedule remembers, for `restore`."""
        return {name: value for name, value in vars(self).items() if name != "plan"}

    def restore(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @property
    def exhausted(self) -> bool:
        return self.plan.early_stop is not None and self.stale >= self.plan.early_stop


class Plateau(Schedule):
    """Halves the rate after `patience` epochs without a better validation loss."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.current = plan.learning_rate
        self.waited = 0  # epochs since the best loss or the last halving

    def rate(self, epochs: float, time: float = 0.0) -> float:
        return self.current

    def update(self, loss: float) -> bool:
        better = super().update(loss)
        self.waited = 0 if better else self.waited + 1
        if self.waited >= self.plan.patience:
            self.current *= 0.5
            self.waited = 0
        return better


class OneCycle(Schedule):
    """Rises in a straight line during the first tenth, then falls to zero as a cosine."""

    def rate(self, epochs: float, time: float = 0.0) -> float:
        done = max(epochs / self.plan.epochs, time)
        if done < _RISE:
            return self.plan.learning_rate * max(done, _FIRST) / _RISE
        rest = min((done - _RISE) / (1 - _RISE), 1.0)
        return self.plan.learning_rate * 0.5 * (1 + math.cos(math.pi * rest))


_RISEN = 10.0  # of the loss at the start, to be called a divergence
_BACK = 0.5  # of it, to have come back

_STEPS = 0.5  # of the time before a deadline: the steps of a training have as much at least

_RISE = 0.1
_FIRST = 1e-3  # share of the training after which the first rate is taken: it is not zero


def make_schedule(plan: Plan) -> Schedule:
    """Return the schedule that a plan asks for."""
    return OneCycle(plan) if plan.one_cycle else Plateau(plan)


@dataclass(frozen=True)
class Deadline:
    """The time at which a training has to end; `clock` returns the present time in seconds."""

    end: float
    clock: Callable[[], float] = now


class TimeLimit:
    """How much of the time before a deadline a training has used.

    Time for one more validation is kept. The first training of a process may wait for libraries to
    start. If that takes more than half of the time, the steps still have half of it, and the
    training ends later. Without a deadline there is no limit.
    """

    def __init__(self, deadline: Deadline | None = None) -> None:
        self.deadline = deadline
        self.begun = deadline.clock() if deadline else 0.0
        self.end = deadline.end if deadline else math.inf
        self.validation = 0.0  # seconds of the latest one
        self._started = False

    def start(self) -> None:
        """Count the time from now on: the first step is next. Later calls change nothing."""
        if self.deadline is None or self._started:
            return
        start = self.deadline.clock()
        self.end = max(self.end, start + _STEPS * (self.end - self.begun))
        self.begun, self._started = start, True

    @property
    def share(self) -> float:
        """Return the share of the time for steps that is used, from 0 to 1."""
        if self.deadline is None:
            return 0.0
        whole = self.end - self.validation - self.begun
        used = self.deadline.clock() - self.begun
        return min(1.0, used / whole) if whole > 0 else 1.0

    @property
    def over(self) -> bool:
        """Say whether all of that time is used."""
        return self.deadline is not None and self.share >= 1.0

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Measure the time of a validation."""
        if self.deadline is None:
            yield
            return
        start = self.deadline.clock()
        yield
        self.validation = self.deadline.clock() - start

    def state(self) -> dict[str, Any]:
        """Return what a later process needs, for `restore`."""
        return {name: getattr(self, name) for name in ("begun", "end", "validation")}

    def restore(self, state: dict[str, Any]) -> None:
        """Count the time that another process used; its clock must go on in this one."""
        vars(self).update(state)
