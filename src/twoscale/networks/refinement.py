"""A small convolutional network that corrects an assembled field."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class RefinementNet(nn.Module):
    """Four 5x5 convolutions with ReLU between them; predicts the field itself, without a skip.

    Maps normalised fields (batch, height, width) to normalised fields.
    """

    def __init__(self, *, channels: int = 32, layers: int = 4, seed: int = 0) -> None:
        super().__init__()
        widths = [1, *[channels] * (layers - 1), 1]
        stack: list[nn.Module] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for before, after in pairwise(widths):
                stack += [nn.Conv2d(before, after, 5, padding=2), nn.ReLU()]
        self.layers = nn.Sequential(*stack[:-1])

    def forward(self, fields: Tensor) -> Tensor:
        return self.layers(fields[:, None])[:, 0]
