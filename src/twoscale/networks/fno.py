"""The Fourier neural operator in two dimensions (Li et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.networks.fourier import FourierConvolution, Pointwise


class FNO2d(nn.Module):
    """Lifting, Fourier layers with a pointwise bypass, GELU after each, and a two-layer head.

    Maps normalised fields (batch, height, width) to normalised fields. Coordinates are appended to
    the input; `padding` nodes at the far edges keep the periodic transform off the boundary.
    """

    def __init__(
        self,
        *,
        layers: int = 4,
        width: int = 32,
        modes: int = 12,
        padding: int = 8,
        head: int = 128,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.padding = padding
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.lift = Pointwise(3, width)
            self.layers = nn.ModuleList(FourierConvolution(width, modes) for _ in range(layers))
            self.head = nn.Sequential(Pointwise(width, head), nn.GELU(), Pointwise(head, 1))

    def forward(self, fields: Tensor) -> Tensor:
        x = functional.pad(self.lift(_with_coordinates(fields)), (0, 0) + (0, self.padding) * 2)
        for layer in self.layers:
            x = functional.gelu(layer(x))
        height, width = fields.shape[1:]
        return self.head(x[:, :height, :width])[..., 0]


def _with_coordinates(fields: Tensor) -> Tensor:
    """Return (batch, height, width, 3): the field, its row and its column coordinate."""
    batch, height, width = fields.shape
    rows = torch.linspace(0, 1, height, dtype=fields.dtype, device=fields.device)
    columns = torch.linspace(0, 1, width, dtype=fields.dtype, device=fields.device)
    shape = (batch, height, width)
    return torch.stack([fields, rows[:, None].expand(shape), columns.expand(shape)], -1)
