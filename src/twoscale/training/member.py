"""One network in the training loop: its shuffles, schedule, history and best weights.

And the state of a training: saved from time to time, restored by a later process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.files import Checkpoint, Checkpoints
from twoscale.files.checkpoints import State
from twoscale.runtime import processes
from twoscale.training.learner import Learner
from twoscale.training.losses import Loss
from twoscale.training.pairs import CodePairs, Shard
from twoscale.training.plan import History, Plan, TimeLimit, make_schedule

ValidationLoss = Callable[[], Tensor | float]


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


class Member:
    """A network that is being trained."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.history = History()
        self.schedule = make_schedule(task.plan)
        self.rate = task.plan.learning_rate  # at present
        self.shuffles = torch.Generator().manual_seed(task.seed)
        self.before = self.shuffles.get_state()  # state before the latest shuffle
        self.best = {key: value.clone() for key, value in task.network.state_dict().items()}

    def order(self) -> Tensor:
        """Return the pairs of the next epoch in their order."""
        self.before = self.shuffles.get_state()
        task = self.task
        held = len(task.training)
        count = held if task.shard is None else task.shard.everywhere(held)
        return torch.randperm(count, generator=self.shuffles)[: task.per_epoch]

    def validate(self) -> Tensor | float:
        """Return the validation loss of the present weights."""
        task = self.task
        if task.validate:
            return task.validate()
        return mean_loss(task.network, task.loss, task.validation, task.plan.evaluation_batch)

    def record_epoch(self, training_loss: float, validation_loss: float, time: float = 0.0) -> None:
        """Add an epoch's losses to the history; keep the weights if they are the best so far.

        `time` is the share of the time before a deadline that was used when the epoch began.
        """
        history = self.history
        history.training_loss.append(training_loss)
        history.learning_rate.append(self.schedule.rate(len(history.learning_rate), time))
        history.validation_loss.append(validation_loss)
        if self.schedule.update(validation_loss):
            history.best_epoch = len(history.validation_loss) - 1
            for key, value in self.task.network.state_dict().items():
                self.best[key].copy_(value)

    def finish(self, name: str) -> None:
        """Leave the network with the best weights."""
        if self.history.best_epoch < 0:
            raise TwoscaleError(
                f"{name} diverged: no validation loss was finite; try a smaller learning_rate"
            )
        self.task.network.load_state_dict(self.best)

    def tensors(self, *, inside: bool) -> dict[str, Tensor]:
        """Return the tensors of the member's state, `inside` an epoch or between two."""
        shuffles = self.before if inside else self.shuffles.get_state()
        return {"shuffles": shuffles, **{f"best.{key}": value for key, value in self.best.items()}}

    def facts(self) -> dict[str, Any]:
        """Return the rest of the state, as plain values."""
        return {
            "rate": self.rate,
            "schedule": self.schedule.state(),
            "history": vars(self.history),
            "extra_history": self.task.extra_history,
        }

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Continue from the state that another process saved."""
        self.shuffles.set_state(tensors["shuffles"])
        for key, value in self.best.items():
            value.copy_(tensors[f"best.{key}"])
        self.rate = facts["rate"]
        self.schedule.restore(facts["schedule"])
        self.history = History(**facts["history"])
        self.task.extra_history.update(facts["extra_history"])


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


class SavedTraining:
    """All that a training needs to continue with the same steps.

    These are weights, moments, shuffles and schedules, the time that is used, and the position: the
    epoch, and the number of its groups of minibatches that are done. Of several processes only the
    first one has a checkpoint; all restore its state.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        learner: Learner,
        members: Sequence[Member],
        limit: TimeLimit,
    ) -> None:
        self.checkpoint = checkpoint
        self.learner = learner
        self.members = members
        self.limit = limit

    @torch.no_grad()
    def restore(self) -> tuple[int, int]:
        """Restore a saved state and return its position; (0, 0) without one."""
        state = self.checkpoint.load() if self.checkpoint else None
        if self.members[0].task.shard is not None:
            state = processes.from_first(state)
        if state is None:
            return 0, 0
        self.learner.restore({name: state.tensors[name] for name in self.learner.state()})
        for index, member in enumerate(self.members):
            member.restore(_part(state.tensors, f"member.{index}."), state.facts["members"][index])
            self.learner.set_rate(index, member.rate)
        self.limit.restore(state.facts["time"])
        return state.facts["epoch"], state.facts["groups"]

    def save_if_due(self, epoch: int, groups: int = 0) -> None:
        """Save the state at a position if the checkpoint is due."""
        if self.checkpoint is not None and self.checkpoint.due():
            self._save(self.checkpoint, epoch, groups)

    def _save(self, checkpoint: Checkpoint, epoch: int, groups: int) -> None:
        state = State(
            dict(self.learner.state()),
            {
                "epoch": epoch,
                "groups": groups,
                "members": [one.facts() for one in self.members],
                "time": self.limit.state(),
            },
        )
        for index, member in enumerate(self.members):
            own = member.tensors(inside=groups > 0)
            state.tensors.update({f"member.{index}.{name}": one for name, one in own.items()})
        checkpoint.save(*state)


class FinishedTraining:
    """The result of one network's training, for a later process that continues after it.

    `key` identifies the task, so that the result is found whatever else is trained beside it.
    """

    def __init__(self, checkpoints: Checkpoints, key: str) -> None:
        self.checkpoint = checkpoints.named(f"finished {key}")

    def restore(self, task: Task) -> History | None:
        """Give the network its weights and return the history, if it was trained before."""
        state = self.checkpoint.load()
        if state is None:
            return None
        task.network.load_state_dict(state.tensors)
        task.extra_history.update(state.facts["extra_history"])
        earlier = self.checkpoint.earlier
        return History(**state.facts["history"] | {"earlier_seconds": earlier})

    def save(self, member: Member, earlier: float) -> None:
        """Save a trained network, if that took long."""
        self.checkpoint.earlier = earlier
        if self.checkpoint.worthwhile():
            facts = {"history": vars(member.history), "extra_history": member.task.extra_history}
            self.checkpoint.save(member.task.network.state_dict(), facts)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
