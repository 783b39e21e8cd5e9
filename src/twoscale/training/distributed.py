"""One training in several processes: each computes the samples of a minibatch that it holds.

The minibatches and their order are those of one process. Gradients are added up, weighted by the
numbers of samples, so that steps differ from those of one process by rounding only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from twoscale.runtime import processes
from twoscale.training.epochs import Epochs
from twoscale.training.learner import ModuleLearner
from twoscale.training.losses import Loss
from twoscale.training.pairs import CodePairs, Shard
from twoscale.training.plan import History, Plan


def begin_together(network: nn.Module, finished: History | None) -> History | None:
    """Give all processes the first one's weights and, if it was trained before, the history."""
    for value in network.state_dict().values():
        processes.copy_from_first(value)
    return processes.from_first(finished)


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
        self,
        learner: SharedLearner,
        training: CodePairs,
        plan: Plan,
        shard: Shard,
        samples: int | None,
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
