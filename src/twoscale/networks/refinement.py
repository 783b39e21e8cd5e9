"""A small convolutional network that corrects an assembled field."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from twoscale.networks.periodic import GridConvolution


class RefinementNet(nn.Module):
    """5x5 convolutions with ReLU between them; predicts the field itself, without a skip.

    Maps normalised fields (batch, field channels, height, width) to fields of the same shape, on
    any grid.

    field_channels: of the fields.
    channels: between the convolutions.
    layers: the number of convolutions.
    periodic: whether rows and columns wrap; edges of other axes are surrounded by zeros.
    seed: of the first weights.

    >>> RefinementNet(2, periodic=(False, True))(torch.zeros(3, 2, 9, 16)).shape
    torch.Size([3, 2, 9, 16])
    """

    def __init__(
        self,
        field_channels: int = 1,
        *,
        channels: int = 32,
        layers: int = 4,
        periodic: tuple[bool, bool] = (False, False),
        seed: int = 0,
    ) -> None:
        super().__init__()
        widths = [field_channels, *[channels] * (layers - 1), field_channels]
        stack: list[nn.Module] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for before, after in pairwise(widths):
                stack += [GridConvolution(before, after, 5, periodic), nn.ReLU()]
        self.layers = nn.Sequential(*stack[:-1])

    def forward(self, fields: Tensor) -> Tensor:
        return self.layers(fields)
