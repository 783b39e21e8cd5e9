"""The state of a training: saved from time to time, restored by a later process."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from twoscale.files import Checkpoint, Checkpoints, State
from twoscale.training.learner import Learner
from twoscale.training.member import Member, Task
from twoscale.training.plan import History


class SavedTraining:
    """All that a training needs to continue with the same steps.

    These are weights, moments, shuffles and schedules, and the position: the epoch, and the number
    of its groups of minibatches that are done.
    """

    def __init__(
        self, checkpoint: Checkpoint | None, learner: Learner, members: Sequence[Member]
    ) -> None:
        self.checkpoint = checkpoint
        self.learner = learner
        self.members = members

    @torch.no_grad()
    def restore(self) -> tuple[int, int]:
        """Restore a saved state and return its position; (0, 0) without one."""
        state = self.checkpoint.load() if self.checkpoint else None
        if state is None:
            return 0, 0
        self.learner.restore({name: state.tensors[name] for name in self.learner.state()})
        for index, member in enumerate(self.members):
            member.restore(_part(state.tensors, f"member.{index}."), state.facts["members"][index])
            self.learner.set_rate(index, member.rate)
        return state.facts["epoch"], state.facts["groups"]

    def save_if_due(self, epoch: int, groups: int = 0) -> None:
        """Save the state at a position if the checkpoint is due."""
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
