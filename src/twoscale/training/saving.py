"""The state of a training, saved now and then, and taken over by the process that goes on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from twoscale.files import Checkpoint, Checkpoints, State
from twoscale.training.learner import Learner
from twoscale.training.member import Member, Task
from twoscale.training.plan import History


class SavedTraining:
    """What a training needs to go on with the same steps: weights, moments, shuffles, schedules.

    A position is an epoch and the groups of minibatches of it that are done.
    """

    def __init__(
        self, checkpoint: Checkpoint | None, learner: Learner, members: Sequence[Member]
    ) -> None:
        self.checkpoint = checkpoint
        self.learner = learner
        self.members = members

    @torch.no_grad()
    def restore(self) -> tuple[int, int]:
        """Take over a saved state; return its position, or that of the beginning."""
        state = self.checkpoint.load() if self.checkpoint else None
        if state is None:
            return 0, 0
        self.learner.restore({name: state.tensors[name] for name in self.learner.state()})
        for index, member in enumerate(self.members):
            member.restore(_part(state.tensors, f"member.{index}."), state.facts["members"][index])
            self.learner.set_rate(index, member.rate)
        return state.facts["epoch"], state.facts["groups"]

    def save_if_due(self, epoch: int, groups: int = 0) -> None:
        """Save the state at a position if so much was done since the last time."""
        if self.checkpoint is not None and self.checkpoint.due():
            self._save(self.checkpoint, epoch, groups)

    def _save(self, checkpoint: Checkpoint, epoch: int, groups: int) -> None:
        state = State(
            dict(self.learner.state()),
            {"epoch": epoch, "groups": groups, "members": [one.facts() for one in self.members]},
        )
        for index, member in enumerate(self.members):
            own = member.tensors(inside=groups > 0)
            state.tensors.update({f"member.{index}.{name}": one for name, one in own.items()})
        checkpoint.save(*state)


class FinishedTraining:
    """The outcome of one network's training, for a process that goes on with what comes after it.

    `key` names the training by what it learns and how, so that it is found again whatever else is
    trained beside it.
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
