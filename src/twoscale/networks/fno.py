"""The Fourier neural operator in two dimensions (Li et al., 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.errors import TwoscaleError
from twoscale.networks.fourier import FourierConvolution, Pointwise, usable_modes


class FNO2d(nn.Module):
    """Lifting, Fourier layers with a pointwise bypass, GELU after each, and a two-layer head.

    Maps normalised fields (batch, channels in, height, width) to (batch, channels out, height,
    width), on any grid. Along an ordinary axis the coordinate is appended to the input, and
    `padding` nodes at the far edge keep the periodic transform off the boundary. A periodic axis
    is not padded, and its coordinate is appended as cosine and sine.

    channels_in, channels_out: of the fields.
    layers: the number of Fourier layers.
    width: channels between the layers.
    modes: Fourier modes per axis (or along rows and columns). A grid that has fewer, at most half
        of its padded side, uses the lowest ones.
    padding: nodes added to each ordinary axis of more than one node.
    head: channels inside the head.
    shape: the grid, if there is only one. Modes that it lacks then get no weights.
    periodic: whether rows and columns wrap.
    seed: of the first weights.

    >>> FNO2d(3, 2, width=4, periodic=(True, False))(torch.zeros(5, 3, 16, 20)).shape
    torch.Size([5, 2, 16, 20])
    """

    def __init__(
        self,
        channels_in: int = 1,
        channels_out: int = 1,
        *,
        layers: int = 4,
        width: int = 32,
        modes: int | tuple[int, int] = 12,
        padding: int = 8,
        head: int = 128,
        shape: tuple[int, int] | None = None,
        periodic: tuple[bool, bool] = (False, False),
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.channels_in = channels_in
        self.padding = padding
        self.periodic = periodic
        rows, columns = (modes, modes) if isinstance(modes, int) else modes
        if shape is not None:
            height, length = self._padded(shape)
            rows, columns = usable_modes(height, rows), usable_modes(length, columns)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # A coordinate along an ordinary axis, its cosine and sine along a periodic one.
            self.lift = Pointwise(channels_in + 2 + periodic.count(True), width)
            self.layers = nn.ModuleList(
                FourierConvolution(width, (rows, columns)) for _ in range(layers)
            )
            self.head = nn.Sequential(
                Pointwise(width, head), nn.GELU(), Pointwise(head, channels_out)
            )

    def forward(self, fields: Tensor) -> Tensor:
        _, channels, height, width = fields.shape
        if channels != self.channels_in:
            raise TwoscaleError(
                f"this network reads fields of {self.channels_in} channels, got {channels}: pass "
                "(batch, channels, height, width)"
            )
        x = self.lift(self._with_coordinates(fields))
        whole = self._padded((height, width))
        if whole != (height, width):
            x = functional.pad(x, (0, 0, 0, whole[1] - width, 0, whole[0] - height))
        for layer in self.layers:
            x = functional.gelu(layer(x))
        out = self.head(x[:, :height, :width])  # (batch, height, width, channels out)
        # A view of one channel, so that its gradient arrives without odd strides.
        return out.permute(0, 3, 1, 2) if out.shape[-1] > 1 else out.view(-1, 1, height, width)

    def _padded(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Return the grid of the Fourier layers."""
        rows, columns = (
            side if side == 1 or wraps else side + self.padding
            for side, wraps in zip(shape, self.periodic, strict=True)
        )
        return rows, columns

    def _with_coordinates(self, fields: Tensor) -> Tensor:
        """Return (batch, height, width, channels): fields, row and column coordinates."""
        batch, _, height, width = fields.shape
        parts = [fields.permute(0, 2, 3, 1)]
        for axis, side in enumerate((height, width)):
            kind: dict[str, Any] = {"dtype": fields.dtype, "device": fields.device}
            nodes = torch.linspace(0, 1, side, **kind)[:, None]  # (side, 1)
            if self.periodic[axis]:
                angle = 2 * torch.pi / side * torch.arange(side, **kind)
                nodes = torch.stack([angle.cos(), angle.sin()], 1)
            places = nodes[:, None] if axis == 0 else nodes
            parts.append(places.expand(batch, height, width, -1))
        return torch.cat(parts, -1)
