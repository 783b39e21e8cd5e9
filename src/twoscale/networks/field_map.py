"""Fields from one grid on another: by interpolation, and by networks between both."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial

import torch
from torch import Tensor, nn

from twoscale.runtime.cuda_graphs import side_by_side


def work_shape(shape_in: tuple[int, int], shape_out: tuple[int, int]) -> tuple[int, int]:
    """Return the grid on which a network between two grids works: the larger side of each axis.

    >>> work_shape((1, 1), (16, 24))
    (16, 24)
    """
    return max(shape_in[0], shape_out[0]), max(shape_in[1], shape_out[1])


class FieldMap(nn.Module):
    """Maps fields (batch, channels in, *shape_in) to (batch, channels out, *shape_out).

    The input is interpolated to the work grid, which has the larger side of each axis; the network
    works there; its result is interpolated to the output grid. Between equal grids the network
    works alone. An input of a single node (parameters only) becomes a constant field.

    network: a map of fields on the grid `work_shape(shape_in, shape_out)`.
    shape_in, shape_out: nodes of the grids (height, width).
    periodic_in, periodic_out: whether their rows and columns wrap.
    """

    def __init__(
        self,
        network: nn.Module,
        shape_in: tuple[int, int],
        shape_out: tuple[int, int],
        periodic_in: tuple[bool, bool] = (False, False),
        periodic_out: tuple[bool, bool] = (False, False),
    ) -> None:
        super().__init__()
        self.network = network
        self.shape_out = shape_out
        self.work_shape = work_shape(shape_in, shape_out)
        self.periodic_in = periodic_in
        self.periodic_out = periodic_out

    def forward(self, fields: Tensor) -> Tensor:
        worked = self.network(resample(fields, self.work_shape, self.periodic_in))
        return resample(worked, self.shape_out, self.periodic_out)


class Committee(nn.Module):
    """The mean of several networks. On a GPU they are computed side by side.

    What each of them gets wrong by chance is smaller in the mean.
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def each(self, fields: Tensor) -> Tensor:
        """Return the results of all members, (members, batch, ...)."""
        works = [partial(member, fields) for member in self.members]
        return torch.stack(side_by_side(works, fields.device))

    def forward(self, fields: Tensor) -> Tensor:
        return self.each(fields).mean(0)


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
