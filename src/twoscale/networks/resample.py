"""Fields from one grid on another, by interpolation between nodes."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def resample(
    fields: Tensor, shape: tuple[int, int], periodic: tuple[bool, bool] = (False, False)
) -> Tensor:
    """Return fields (batch, channels, h, w) on a grid of `shape` nodes, interpolated bilinearly.

    Along an ordinary axis the nodes of both grids include the ends, and linear functions are kept
    exactly. Along a periodic axis node k of n lies at k / n, and the last node is followed by the
    first. A side of one node has no places: it becomes a constant, and the mean of other sides.
    Fields that are on the grid already are returned as they are.

    >>> resample(torch.tensor([[[[0.0, 2.0]]]]), (1, 5)).tolist()
    [[[[0.0, 0.5, 1.0, 1.5, 2.0]]]]
    """
    height, width = fields.shape[2:]
    kind = (fields.device, fields.dtype)
    if width != shape[1]:
        fields = fields @ _interpolation(width, shape[1], periodic[1], *kind).T
    if height != shape[0]:
        fields = _interpolation(height, shape[0], periodic[0], *kind) @ fields
    return fields


@cache  # for good: recorded steps read the matrices where they lie
def _interpolation(
    before: int, after: int, periodic: bool, device: torch.device, dtype: torch.dtype
) -> Tensor:
    """Return the matrix (after, before) that interpolates along one axis."""
    if 1 in (before, after):
        return torch.full((after, before), 1 / before, dtype=dtype, device=device)
    steps = _steps(before, after, periodic)
    lower = steps.floor().long()
    share = (steps - lower)[:, None]
    identity = torch.eye(before, dtype=torch.float64)
    last = before - 1  # of an ordinary axis; its share of what would follow is zero
    upper = (lower + 1) % before if periodic else (lower + 1).clamp(max=last)
    return ((1 - share) * identity[lower] + share * identity[upper]).to(device, dtype)


def _steps(before: int, after: int, periodic: bool) -> Tensor:
    """Return where the nodes of the grid after lie, in steps of the grid before."""
    nodes = torch.arange(after, dtype=torch.float64)
    # Products of whole numbers first: nodes in common are exact.
    return nodes * before / after if periodic else nodes * (before - 1) / (after - 1)


def interpolate_cubic(
    fields: Tensor, shape: tuple[int, int], periodic: tuple[bool, bool] = (False, False)
) -> Tensor:
    """Return fields (batch, channels, h, w) on a grid of `shape` nodes, interpolated by cubics.

    Nodes are those of `resample`. The cubic goes through the four nearest nodes; near the ends of
    an ordinary axis these are the four last ones. Cubic functions are kept exactly along ordinary
    axes. Sides of fewer nodes have polynomials of a lower degree.

    >>> values = torch.linspace(0, 1, 5, dtype=torch.float64)[None, None, None] ** 3
    >>> round(float(interpolate_cubic(values, (1, 9))[0, 0, 0, 1]) * 8**3, 6)
    1.0
    """
    kind = (fields.device, fields.dtype)
    for axis, place in ((1, 3), (0, 2)):
        before, after = fields.shape[place], shape[axis]
        if before == after:
            continue
        matrix = _cubic_interpolation(before, after, periodic[axis], *kind)
        fields = fields @ matrix.T if axis else matrix @ fields
    return fields


@cache
def _cubic_interpolation(
    before: int, after: int, periodic: bool, device: torch.device, dtype: torch.dtype
) -> Tensor:
    """Return the matrix (after, before) that interpolates by cubics along one axis."""
    if 1 in (before, after):
        return _interpolation(before, after, periodic, device, dtype)
    steps = _steps(before, after, periodic)
    count = min(4, before)
    first = steps.floor().long() - (count // 2 - 1)  # of the nodes that a cubic goes through
    if not periodic:
        first = first.clamp(0, before - count)
    places = first[:, None] + torch.arange(count)  # (after, count)
    weights = torch.ones(after, count, dtype=torch.float64)
    for one in range(count):
        for other in range(count):
            if one != other:
                weights[:, one] *= (steps - places[:, other]) / (one - other)
    matrix = torch.zeros(after, before, dtype=torch.float64)
    return matrix.scatter_add_(1, places % before, weights).to(device, dtype)
