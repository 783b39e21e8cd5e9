"""The state of a training, saved now and then, and taken over by the process that goes on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from twoscale.files import Checkpoint, State
from twoscale.training.learner import Learner
from twoscale.training.member import Member


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

    def offer(self, epoch: int, groups: int = 0) -> None:
        """Save the state at a position if it is due."""
        if self.checkpoint is not None and self.checkpoint.due():
            self._save(self.checkpoint, epoch, groups)

    def finish(self, epochs: int) -> None:
        """Save the state at the end, so that what comes after it can be done again."""
        if self.checkpoint is None or not self.checkpoint.worthwhile():
            return
        self._save(self.checkpoint, epochs, 0)

    def _save(self, checkpoint: Checkpoint, epoch: int, groups: int) -> None:
        state = State(
            dict(self.learner.state()),
            {"epoch": epoch, "groups": groups, "members": [one.facts() for one in self.members]},
        )
        for index, member in enumerate(self.members):
            own = member.tensors(inside=groups > 0)
            state.tensors.update({f"member.{index}.{name}": one for name, one in own.items()})
        checkpoint.save(*state)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
