"""Maps from input codes to output codes: the only thing that is trained."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


class MLP(nn.Sequential):
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


def count_parameters(module: nn.Module) -> int:
    """Return the number of trained scalars."""
    return sum(parameter.numel() for parameter in module.parameters())
