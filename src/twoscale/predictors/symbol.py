"""The symbol of a linear map: for each mode of a series a small matrix, by least squares."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from twoscale.predictors.continuation import continue_symbol

_RIDGE = 1e-10  # of each channel's energy in a mode
_KNOWN = 1e-10  # of the mean square at a node; rounding of single precision is 1e-14

Batches = Iterable[tuple[Tensor, Tensor]]


def apply_symbol(symbol: Tensor, inputs: Tensor) -> Tensor:
    """Return the output modes (batch, channels out, rows, columns) of input modes.

    symbol: (rows, columns, channels out, channels in).
    """
    return torch.einsum("rcoi,birc->borc", symbol, inputs)


class SymbolFit:
    """The least-squares symbol between batches of modes of inputs and outputs.

    batches: pairs of coefficients (batch, channels, row modes, column modes) in double precision.
    level: mean squares (field channels,) of the means that the inputs lack, at a node. Input
    channels after these are parameters, which have all modes.

    symbol: (row modes, column modes, channels out, channels in), real or complex.
    variance: its squared standard errors, alike.
    known: whether the inputs have a mode, (row modes, column modes, field channels).
    """

    def __init__(self, batches: Batches, level: Tensor) -> None:
        count = 0
        gram = cross = squares = torch.zeros(())
        for x, y in batches:
            gram = gram + _products(x, x)
            cross = cross + _products(y, x)
            squares = squares + y.abs().square().sum(0).permute(1, 2, 0)
            count += len(x)
        energy = gram.diagonal(dim1=-2, dim2=-1).real
        inverse = _inverse(gram, energy)
        self.symbol = cross @ inverse
        explained = (self.symbol * cross.conj()).real.sum(-1)
        rest = (squares - explained).clamp_min(0) / max(count - gram.shape[-1], 1)
        self.variance = rest[..., None] * inverse.diagonal(dim1=-2, dim2=-1).real[..., None, :]
        energy = energy[..., : len(level)] / count
        self.known = energy > _KNOWN * (level + energy.mean((0, 1)))

    def continued(self, waves: Tensor) -> tuple[Tensor, float, list[str]]:
        """Return the symbol at all modes, the share of known ones, and the rules for the others.

        waves: half waves (row modes, column modes, 2) of the modes.
        """
        symbol, rules = self.symbol.clone(), []
        for channel in range(self.known.shape[-1]):
            values, rule = continue_symbol(
                waves,
                _parts(symbol[..., channel]),
                self.variance[..., channel].repeat_interleave(1 + symbol.is_complex(), -1),
                self.known[..., channel],
            )
            symbol[..., channel] = _whole(values, symbol)
            rules.append(rule)
        return symbol, float(self.known.double().mean()), rules


def _products(x: Tensor, y: Tensor) -> Tensor:
    """Return the sums over samples of x_i conj(y_j), (rows, columns, channels i, channels j).

    Channel by channel: one product of matrices per mode would be several times slower.
    """
    sums = [(x * other.conj()).sum(0) for other in y.split(1, dim=1)]
    return torch.stack(sums, -1).movedim(0, 2)


def _inverse(gram: Tensor, energy: Tensor) -> Tensor:
    """Return the inverse of Gram matrices (..., channels, channels), slightly regularised.

    The ridge is relative to each channel's energy (..., channels): a weak channel keeps its part.
    """
    root = torch.where(energy > 0, energy, 1.0).sqrt()
    scale = root[..., :, None] * root[..., None, :]
    identity = torch.eye(energy.shape[-1], dtype=gram.dtype, device=gram.device)
    return torch.linalg.inv(gram / scale + _RIDGE * identity) / scale


def _parts(values: Tensor) -> Tensor:
    """Return the real and imaginary parts of numbers (..., n) side by side, (..., 2 n)."""
    return torch.view_as_real(values).flatten(-2) if values.is_complex() else values


def _whole(parts: Tensor, like: Tensor) -> Tensor:
    """Undo `_parts`."""
    if not like.is_complex():
        return parts
    return torch.view_as_complex(parts.unflatten(-1, (-1, 2)).contiguous())
