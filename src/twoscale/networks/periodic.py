"""Convolutions that keep the grid, with zeros beyond ordinary edges and wrapped periodic axes;
and the paper's network of them, which corrects an assembled field.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

Margins = tuple[int, int]  # nodes beyond each edge: along rows, along columns


def margins_of(kernel: int, periodic: tuple[bool, bool]) -> tuple[Margins, Margins]:
    """Return the margins that are wrapped and those that are zero, for a convolution's kernel."""
    rows, columns = (kernel // 2 if wraps else 0 for wraps in periodic)
    return (rows, columns), (kernel // 2 - rows, kernel // 2 - columns)


def wrap(fields: Tensor, margins: Margins) -> Tensor:
    """Return fields (batch, channels, height, width) continued periodically beyond their edges.

    A margin of zero leaves its axis as it is. The memory format is kept.
    """
    for axis, margin in zip((2, 3), margins, strict=True):
        side = fields.shape[axis]
        if margin > side:  # around more than once
            places = torch.arange(-margin, side + margin, device=fields.device) % side
            fields = fields.index_select(axis, places)
        elif margin:
            first, last = fields.narrow(axis, 0, margin), fields.narrow(axis, -margin, margin)
            fields = torch.cat([last, fields, first], axis)
    return fields


def trim(fields: Tensor, margins: Margins) -> Tensor:
    """Return a view of wrapped fields without their margins."""
    for axis, margin in zip((2, 3), margins, strict=True):
        if margin:
            fields = fields.narrow(axis, margin, fields.shape[axis] - 2 * margin)
    return fields


def fold(fields: Tensor, margins: Margins) -> Tensor:
    """Return the transpose of `wrap`: margins are added to the nodes that they repeat.

    Margins are at most as long as a side. The argument's memory is written to.
    """
    for axis, margin in zip((2, 3), margins, strict=True):
        if margin:
            side = fields.shape[axis] - 2 * margin
            before = fields.narrow(axis, 0, margin)
            after = fields.narrow(axis, side + margin, margin)
            fields.narrow(axis, side, margin).add_(before)
            fields.narrow(axis, margin, margin).add_(after)
            fields = fields.narrow(axis, margin, side)
    return fields


class GridConvolution(nn.Conv2d):
    """A convolution with a square, odd kernel that keeps the grid of its fields.

    Beyond the edges of ordinary axes it reads zeros; along `periodic` axes (rows, columns) it
    wraps, whatever the number of nodes.
    """

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        kernel: int,
        periodic: tuple[bool, bool] = (False, False),
    ) -> None:
        self.margins, zeros = margins_of(kernel, periodic)
        super().__init__(channels_in, channels_out, kernel, padding=zeros)

    def forward(self, fields: Tensor) -> Tensor:
        return super().forward(wrap(fields, self.margins))


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
