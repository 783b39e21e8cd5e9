"""The Fourier neural operator in two dimensions (Li et al., 2021)."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.errors import TwoscaleError


class SpectralConvolution(nn.Module):
    """Multiplies the lowest Fourier modes by learned complex matrices over channels.

    Of the real FFT, `modes` columns and, for rows, `modes` positive and `modes` negative
    frequencies are kept (both corners). Weights are stored as real pairs (..., 2), which every
    optimiser and file format understands.
    """

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        shape = (2, channels, channels, modes, modes, 2)
        self.weights = nn.Parameter(torch.rand(shape) / channels**2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to the same shape.

        Only the kept modes are ever computed: few enough that products with the transforms'
        matrices are faster than FFTs of the whole field.
        """
        height, width = x.shape[-2:]
        if 2 * self.modes > min(height, width):
            raise TwoscaleError(
                f"{self.modes} Fourier modes need fields of at least {2 * self.modes} nodes a side "
                f"with padding, got {height}x{width}: use fewer modes"
            )
        rows, columns = _transforms(height, width, self.modes, x.device, x.dtype)
        lines = torch.view_as_complex((x @ columns).unflatten(-1, (-1, 2)))
        spectrum = (rows @ lines).flatten(2)  # (batch, channels, modes kept)
        weights = torch.view_as_complex(self.weights).movedim(0, 2).flatten(2)
        mixed = torch.bmm(spectrum.permute(2, 0, 1), weights.permute(2, 0, 1)).permute(1, 2, 0)
        lines = rows.mH @ mixed.unflatten(2, (-1, self.modes))
        halves = columns.T / (height * width)
        halves = torch.cat([halves[:2], 2 * halves[2:]])  # all but the mean stand for two modes
        return torch.view_as_real(lines).flatten(-2) @ halves


@lru_cache(maxsize=8)
def _transforms(
    height: int, width: int, modes: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return the kept modes' Fourier matrices: rows complex (2 modes, height), columns as real
    pairs (width, 2 modes)."""
    kept = torch.cat([torch.arange(modes), torch.arange(-modes, 0)]).double()
    phase = torch.outer(kept, torch.arange(height).double()) * (-2 * math.pi / height)
    rows = torch.polar(torch.ones_like(phase), phase)
    phase = torch.outer(torch.arange(width).double(), torch.arange(modes).double())
    columns = torch.polar(torch.ones_like(phase), phase * (-2 * math.pi / width))
    pairs = torch.view_as_real(columns).flatten(1)
    complex_dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
    return rows.to(device, complex_dtype), pairs.to(device, dtype)


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
            self.lift = nn.Conv2d(3, width, 1)
            self.spectral = nn.ModuleList(SpectralConvolution(width, modes) for _ in range(layers))
            self.bypass = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))
            self.head = nn.Sequential(nn.Conv2d(width, head, 1), nn.GELU(), nn.Conv2d(head, 1, 1))

    def forward(self, fields: Tensor) -> Tensor:
        x = functional.pad(self.lift(_with_coordinates(fields)), (0, self.padding) * 2)
        for spectral, bypass in zip(self.spectral, self.bypass, strict=True):
            x = functional.gelu(spectral(x) + bypass(x))
        height, width = fields.shape[1:]
        return self.head(x[..., :height, :width])[:, 0]


def _with_coordinates(fields: Tensor) -> Tensor:
    """Return (batch, 3, height, width): the field, its row and its column coordinate."""
    batch, height, width = fields.shape
    rows = torch.linspace(0, 1, height, dtype=fields.dtype, device=fields.device)
    columns = torch.linspace(0, 1, width, dtype=fields.dtype, device=fields.device)
    shape = (batch, height, width)
    return torch.stack([fields, rows[:, None].expand(shape), columns.expand(shape)], 1)
