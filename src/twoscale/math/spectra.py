"""Radial spectra of fields."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from twoscale.domain.grid import as_planes


@lru_cache(maxsize=8)
def _radial_bins(shape: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return, for the modes of a real FFT, bin round(|k|) and multiplicity, and the bins' sizes.

    A real field's modes come in conjugate pairs of equal energy, of which the real FFT holds one.
    """
    height, width = shape
    rows, columns = torch.fft.fftfreq(height, 1.0 / height), torch.fft.rfftfreq(width, 1.0 / width)
    bins = torch.hypot(rows[:, None], columns).round().long().flatten()
    single = (columns == 0) | (2 * columns == width)
    multiplicity = torch.where(single, 1.0, 2.0).expand(height, -1).flatten()
    counts = torch.bincount(bins, weights=multiplicity)
    return bins.to(device), multiplicity.to(device), counts.to(device)


def radial_spectrum(fields: Tensor) -> Tensor:
    """Return |FFT2|^2 averaged in integer radial bins, (batch, channels, bins).

    Fields are (batch, channels, *shape) of a line or a plane. On a line the bins are |k|.
    """
    fields = as_planes(fields)
    height, width = fields.shape[2:]
    bins, multiplicity, counts = _radial_bins((height, width), fields.device)
    energy = torch.view_as_real(torch.fft.rfft2(fields)).square().sum(-1).flatten(2)
    total = energy.new_zeros(*fields.shape[:2], len(counts))
    total = total.index_add(2, bins, energy * multiplicity.to(energy.dtype))
    return total / counts.to(energy.dtype)
