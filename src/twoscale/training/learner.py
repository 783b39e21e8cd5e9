"""Networks with their optimisers: what the training loop steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from twoscale.training.losses import Loss
from twoscale.training.muon import Muon
from twoscale.training.plan import Plan


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


class AdamRows:
    """Adam with L2 decay on the rows of one matrix, each with its own rate.

    The fused kernel works through one block of threads per tensor, so on CUDA a row is handed to it
    in pieces.
    """

    def __init__(self, rows: Tensor, gradients: Tensor, plans: Sequence[Plan]) -> None:
        cuda = rows.is_cuda
        members, size = rows.shape
        self.first, self.second = torch.zeros_like(rows), torch.zeros_like(rows)
        self.steps = torch.zeros(members, device=rows.device)
        rates = [plan.learning_rate for plan in plans]
        self.rates: Any = torch.tensor(rates, device=rows.device) if cuda else rates
        piece = max(_PIECE, -(-size // _PIECES)) if cuda else size
        self.arguments = []
        for member in range(members):
            whole = (rows, gradients, self.first, self.second)
            pieces = [values[member].split(piece) for values in whole]
            self.arguments.append([*pieces, [self.steps[member]] * len(pieces[0])])
        self.options: list[dict[str, Any]] = [
            {
                "beta1": 0.9,
                "beta2": 0.999,
                "eps": 1e-8,
                "weight_decay": plan.weight_decay,
                "amsgrad": False,
                "maximize": False,
            }
            for plan in plans
        ]

    def step(self) -> None:
        self.steps.add_(1)
        for member, (rows, gradients, first, second, steps) in enumerate(self.arguments):
            torch._fused_adam_(  # what torch.optim.Adam(fused=True) calls, without its bookkeeping
                rows,
                gradients,
                first,
                second,
                [],
                steps,
                lr=self.rates[member],
                **self.options[member],
            )

    def set_rate(self, member: int, rate: float) -> None:
        self.rates[member] = rate

    def moments(self) -> list[Tensor]:
        return [self.first, self.second, self.steps]


_PIECE = 4096  # at least this many parameters per piece
_PIECES = 72  # about as many as two launches of the fused kernel take


def _steps(
    inputs: Tensor,  # (steps x batch, first layer's inputs), the constant included
    targets: Tensor,  # (steps x batch, codes)
    batch: int,
    signals: list[Tensor],  # inputs of the layers but the first
    outputs: list[Tensor],  # of the layers; all but the last lie inside `signals`
    grads: list[Tensor],  # gradients in the outputs
    transposed_grads: list[Tensor],  # the same, transposed
    transposed_weights: list[Tensor],  # weights, transposed
    inner_weights: list[Tensor],  # weights without the constant's column
    gradients: list[Tensor],  # in the weights, inside `gradient`
    scaled: Tensor,  # (1, codes): the loss's weights times 2 / batch
    error_row: Tensor,
    grad_column: Tensor,
    dot: Tensor,
    total: Tensor,
    # Weights, gradient, moments, none, steps, each in a list: TorchScript drops in-place changes of
    # tensors that are not in a list.
    adam: list[list[Tensor]],
    rate: float,
    weight_decay: float,
) -> None:
    last = len(transposed_weights) - 1
    for start in range(0, inputs.size(0), batch):
        signal = inputs.narrow(0, start, batch)
        for layer in range(last):
            torch.mm(signal, transposed_weights[layer], out=outputs[layer])
            outputs[layer].relu_()
            signal = signals[layer]
        torch.mm(signal, transposed_weights[last], out=outputs[last])
        outputs[last].sub_(targets.narrow(0, start, batch))
        torch.mul(outputs[last], scaled, out=grads[last])
        torch.bmm(error_row, grad_column, out=dot)
        total.add_(dot.view(1), alpha=0.5 * batch)
        for done in range(last):
            layer = last - done
            torch.mm(transposed_grads[layer], signals[layer - 1], out=gradients[layer])
            below = grads[layer - 1]
            torch.mm(grads[layer], inner_weights[layer], out=below)
            torch.ops.aten.threshold_backward(below, outputs[layer - 1], 0, grad_input=below)
        torch.mm(transposed_grads[0], inputs.narrow(0, start, batch), out=gradients[0])
        adam[5][0].add_(1)
        torch._fused_adam_(
            adam[0],
            adam[1],
            adam[2],
            adam[3],
            adam[4],
            adam[5],
            lr=rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=weight_decay,
            amsgrad=False,
            maximize=False,
        )


@cache
def scripted_steps() -> Callable[..., None] | None:
    """Return the steps of one small network on a CPU as one compiled call, or None.

    TorchScript runs the same operations, to the same bits, without Python between them (a tenth
    less time) and without holding the interpreter's lock: members on other cores go on meanwhile.
    Where this Python or torch cannot compile them, there are none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.script(_steps)
    except Exception:  # any failure: the uncompiled steps are used
        return None
