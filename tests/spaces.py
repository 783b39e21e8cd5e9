"""Spaces on which every representation is tried, and smooth random fields of them."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tests.conftest import make_poisson
from twoscale.domain.cuts import Axis
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space

SPACES = {
    "channels": Space(Grid((17, 23)), 2, names=("small", "large")),
    "row": Space(Grid((1, 64))),
    "line": Space(Grid((64,))),
    "periodic": Space(Grid.square(32, periodic=True)),
    "box": Space(Grid((8, Axis(9, periodic=True), 10))),
}
UNITS = (1.0, 1e6)  # of the first and of the second channel
_WAVES = 12  # per axis, at most; twice as many on a line
_SAMPLES = 90  # more than a coarse grid has values


@lru_cache(maxsize=32)
def poisson_fields(shape: tuple[int, int], samples: int, seed: int = 0) -> Tensor:
    """Solutions (samples, 1, height, width) of Poisson's equation."""
    return make_poisson(shape, samples, seed=seed).batch.outputs


@lru_cache(maxsize=32)
def smooth_fields(space: Space, samples: int = _SAMPLES, seed: int = 0) -> Tensor:
    """Random waves of decreasing size (samples, channels, *shape), about a mean field."""
    generator = torch.Generator().manual_seed(100 + seed)
    lines = sum(side > 1 for side in space.grid.shape) == 1
    most, decay = (2 * _WAVES, 1.3) if lines else (_WAVES, 1.5)
    axes = [_waves(axis.size, axis.periodic, most) for axis in space.grid.axes]
    numbers = torch.meshgrid(*(torch.arange(axis.shape[1]) for axis in axes), indexing="ij")
    order = sum(number**2 for number in numbers)
    shape = (samples, space.channels, *order.shape)
    weights = torch.randn(shape, generator=generator, dtype=torch.float64) / (1 + order) ** decay
    mean = torch.zeros(())
    for place, axis in enumerate(axes):
        weights = (weights.movedim(2 + place, -1) @ axis.T).movedim(-1, 2 + place)
        mean = mean[..., None] + axis[:, :3].sum(1)
    unit = torch.tensor(UNITS[: space.channels], dtype=torch.float64).reshape(-1, *space.ones)
    return (unit * (weights + 0.1 * mean)).float()


def _waves(size: int, periodic: bool, most: int) -> Tensor:
    """Return the cosines, or the waves of a period, along an axis (size, waves)."""
    if size == 1:
        return torch.ones(1, 1, dtype=torch.float64)
    count = min(most, size // 2)
    number = torch.arange(count, dtype=torch.float64)
    if not periodic:
        return torch.cos(torch.pi * torch.linspace(0, 1, size).double()[:, None] * number)
    angles = 2 * torch.pi / size * torch.arange(size).double()[:, None] * number
    waves = torch.stack([angles.cos(), angles.sin()], 2).flatten(1)
    return waves[:, [0, *range(2, 2 * count)]]  # the sine of nothing is left out
