"""The paper's network on codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


class DenseNetwork(nn.Sequential):
    """Fully connected ReLU network with hidden layers of equal width.

    Initialised on the CPU from `seed`, so that every device starts from the same weights.
    """

    def __init__(self, sizes: Sequence[int], *, seed: int = 0) -> None:
        layers: list[nn.Module] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for before, after in pairwise(sizes):
                layers += [nn.Linear(before, after), nn.ReLU()]
        super().__init__(*layers[:-1])

    @property
    def linear(self) -> list[nn.Linear]:
        """Return the layers that have weights."""
        return [layer for layer in self if isinstance(layer, nn.Linear)]

    def for_page(self, pack: Callable[..., Any]) -> list[dict[str, Any]]:
        """Return what a page computes each layer from; `pack` makes text of an array."""
        return [
            {"weight": pack(layer.weight, "weights"), "bias": pack(layer.bias)}
            for layer in self.linear
        ]

    @torch.no_grad()
    def followed_by(self, matrix: Tensor) -> DenseNetwork:
        """Return a network whose output is this one's times `matrix` (outputs, new outputs)."""
        layers = self.linear
        sizes = [layer.in_features for layer in layers]
        changed = DenseNetwork((*sizes, matrix.shape[1])).to(matrix.device)
        for one, other in zip(changed.linear[:-1], layers[:-1], strict=True):
            one.load_state_dict(other.state_dict())
        changed.linear[-1].weight.copy_(matrix.mT @ layers[-1].weight.to(matrix.dtype))
        changed.linear[-1].bias.copy_(layers[-1].bias.to(matrix.dtype) @ matrix)
        return changed


def count_parameters(module: nn.Module) -> int:
    """Return the number of trained scalars."""
    return sum(parameter.numel() for parameter in module.parameters())
