"""Traces of fields on seams: linear maps from a field to its jumps.

Fields are (batch, channels, *shape); a trace is (batch, channels, n).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from twoscale.domain.patches import Seams

Trace = Callable[[Tensor, Seams], Tensor]


def value_trace(fields: Tensor, seams: Seams) -> Tensor:
    """Return T_V = v[b] - v[b-1] across every seam b of all axes."""
    return _across(seams, (-1, 0), lambda spacing, before, at: at - before, fields)


def normal_derivative_trace(fields: Tensor, seams: Seams) -> Tensor:
    """Return T_F = (v[b+1] - v[b]) / h - (v[b] - v[b-1]) / h across every seam of all axes."""

    def jump(spacing: float, before: Tensor, at: Tensor, after: Tensor) -> Tensor:
        return ((after - at) - (at - before)) / spacing

    return _across(seams, (-1, 0, 1), jump, fields)


def flux_trace(fields: Tensor, coefficient: Tensor, seams: Seams) -> Tensor:
    """Return the jump of the flux a du/dn across every seam of all axes.

    (a[b+1/2] (v[b+1] - v[b]) - a[b-1/2] (v[b] - v[b-1])) / h, a at faces as the mean of two nodes.
    The coefficient a (batch, 1, *shape) is that of all channels.
    """

    def jump(
        spacing: float, u0: Tensor, u1: Tensor, u2: Tensor, a0: Tensor, a1: Tensor, a2: Tensor
    ) -> Tensor:
        return 0.5 * ((a1 + a2) * (u2 - u1) - (a0 + a1) * (u1 - u0)) / spacing

    return _across(seams, (-1, 0, 1), jump, fields, coefficient)


TRACES: dict[str, Trace] = {
    "value": value_trace,
    "normal_derivative": normal_derivative_trace,
}


def _across(
    seams: Seams, offsets: tuple[int, ...], jump: Callable[..., Tensor], *tensors: Tensor
) -> Tensor:
    """Apply `jump(spacing, *lines)` to the node lines beside each seam, tensor after tensor.

    Lines wrap along periodic axes. Elsewhere a seam so close to the border that a line would lie
    outside the grid is left out.
    """
    traces = []
    for k, (places, axis) in enumerate(zip(seams.places, seams.axes, strict=True), 2):
        if not axis.periodic:
            places = tuple(place for place in places if place + max(offsets) < axis.size)
        device = tensors[0].device
        lines = [
            tensor.index_select(k, _positions(places, offset, axis.size, device))
            for tensor in tensors
            for offset in offsets
        ]
        traces.append(jump(axis.spacing, *lines).flatten(2))
    return torch.cat(traces, 2)


@lru_cache(maxsize=64)
def _positions(places: tuple[int, ...], offset: int, size: int, device: torch.device) -> Tensor:
    """Return line numbers on the device; kept, so that losses make no transfers."""
    return (torch.tensor(places, dtype=torch.int64, device=device) + offset) % size
