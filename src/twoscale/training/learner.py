"""Networks with their optimisers: what the training loop steps."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from twoscale.runtime import processes
from twoscale.training.optimisers import Muon
from twoscale.training.plan import Plan
from twoscale.training.task import Loss


class Learner(ABC):
    """Networks that take their optimiser steps together, one member each.

    `total` (members,) gathers the training losses, weighted by the number of samples.
    """

    total: Tensor

    @abstractmethod
    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """Take one step on a minibatch of every member, (members, batch, ...)."""

    def steps(self, inputs: Tensor, targets: Tensor, batch: int) -> None:
        """Take a step on each minibatch in a row of them, (steps x members x batch, ...)."""
        shape = (-1, len(self.total), batch)
        for one in zip(inputs.unflatten(0, shape), targets.unflatten(0, shape), strict=True):
            self.step(*one)

    @abstractmethod
    def set_rate(self, member: int, rate: float) -> None:
        """Set the learning rate of a member."""

    @abstractmethod
    def weights(self) -> list[Tensor]:
        """Return what the steps change, in place."""

    @abstractmethod
    def moments(self) -> list[Tensor]:
        """Return the optimiser's state, all zero before the first step."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Return all tensors that the steps change, by name: weights, moments, losses."""

    @abstractmethod
    def restore(self, state: dict[str, Tensor]) -> None:
        """Copy a state into the tensors in place, as captured steps require."""

    @abstractmethod
    def release(self) -> None:
        """Make the networks independent modules again, after the last step."""


class ModuleLearner(Learner):
    """One module of any kind, differentiated automatically."""

    def __init__(self, network: nn.Module, loss: Loss, plan: Plan, device: torch.device) -> None:
        self.network = network
        self.loss = loss
        self.optimiser = _make_optimiser(network, plan, device)
        self.clip = plan.clip
        self.total = torch.zeros(1, device=device)

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        value = self.loss(self.network(inputs[0]), targets[0])
        self.optimiser.zero_grad(set_to_none=True)
        value.backward()
        self._take_step()
        self.total.add_(value.detach(), alpha=inputs.shape[1])

    def _take_step(self) -> None:
        """Take the optimiser's step with the gradients as they are."""
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
        self.optimiser.step()

    def set_rate(self, member: int, rate: float) -> None:
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def weights(self) -> list[Tensor]:
        return list(self.network.state_dict().values())

    def moments(self) -> list[Tensor]:
        return [value for state in self.optimiser.state.values() for value in state.values()]

    def state(self) -> dict[str, Tensor]:
        weights = {f"weight.{name}": one for name, one in self.network.state_dict().items()}
        return {"total": self.total, **weights, **self._moments()}

    def _moments(self) -> dict[str, Tensor]:
        """Return the optimiser's state by name, made where the first step would make it."""
        named: dict[str, Tensor] = {}
        for place, parameter in enumerate(self._parameters()):
            state = self.optimiser.state[parameter]
            if not state:  # as Adam's first step does
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
            named |= {f"moment.{place}.{name}": value for name, value in state.items()}
        return named

    def _parameters(self) -> list[nn.Parameter]:
        return [one for group in self.optimiser.param_groups for one in group["params"]]

    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in self.state().items():
            value.copy_(state[name])

    def release(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)  # gradients lie in the memory of a graph


def _make_optimiser(network: nn.Module, plan: Plan, device: torch.device) -> torch.optim.Optimizer:
    cuda = device.type == "cuda"
    rate = torch.tensor(plan.learning_rate, device=device) if cuda else plan.learning_rate
    if plan.optimiser == "muon":
        return Muon(network.parameters(), lr=rate, weight_decay=plan.weight_decay)
    return torch.optim.Adam(
        network.parameters(), lr=rate, weight_decay=plan.weight_decay, fused=True, capturable=cuda
    )


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
