"""Maps from input code to output code, fitted on pairs of codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.objectives import CodeLoss, code_weights
from twoscale.predictors import MLP
from twoscale.training import Pairs, Plan, Task


class CodePredictor(nn.Module, ABC):
    """A map from codes (batch, input code) to codes (batch, output code)."""

    @abstractmethod
    def task(
        self, training: Pairs, validation: Pairs, block_sizes: Sequence[int], seed: int
    ) -> Task:
        """Return what has to be learned; the task's network is this predictor's from now on.

        `block_sizes` are the stages of the output code.
        """

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`."""

    @property
    @abstractmethod
    def trained(self) -> nn.Module:
        """Return the network whose weights training changes."""

    @abstractmethod
    def forward(self, codes: Tensor) -> Tensor: ...


class MLPPredictor(CodePredictor):
    """The paper's latent network: an MLP trained on a weighting of the squared code errors."""

    def __init__(self, *, hidden: tuple[int, ...], objective: str, plan: Plan) -> None:
        super().__init__()
        self.hidden = hidden
        self.objective = objective
        self.plan = plan
        self.network: nn.Module | None = None

    def task(
        self, training: Pairs, validation: Pairs, block_sizes: Sequence[int], seed: int
    ) -> Task:
        sizes = (training.inputs.shape[1], *self.hidden, training.targets.shape[1])
        self.network = MLP(sizes, seed=seed).to(training.inputs.device)
        variance = training.targets.var(0, unbiased=False)
        loss = CodeLoss(code_weights(self.objective, block_sizes, variance))
        return Task(self.network, training, validation, loss, self.plan, seed)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        # By name: files hold tensors in any order, and the hidden layers are the settings'.
        first = tensors.get("network.0.weight")
        last = tensors.get(f"network.{2 * len(self.hidden)}.weight")
        ends = (1, 1) if first is None or last is None else (first.shape[-1], len(last))
        self.network = MLP((ends[0], *self.hidden, ends[1]))
        load_weights(self, tensors)
        return self

    @property
    def trained(self) -> nn.Module:
        assert self.network is not None
        return self.network

    def forward(self, codes: Tensor) -> Tensor:
        return self.trained(codes)


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a state dict, reporting a mismatch as a damaged artifact."""
    try:
        module.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise TwoscaleError(f"the weights do not fit the model: {error}".split("\n")[0]) from error
