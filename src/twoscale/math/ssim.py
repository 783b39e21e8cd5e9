"""Structural similarity of fields."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.grid import as_planes
from twoscale.fields.source import slices

_WINDOW = 7  # nodes per axis
_SSIM_VALUES = 2**21  # nodes at a time: some 250 MB of work space
_ROUNDING = 1e-6  # of the largest value, in single precision


def structural_similarity(prediction: Tensor, truth: Tensor) -> Tensor:
    """Return the SSIM (batch, channels) of fields (batch, channels, *shape).

    Wang et al. (2004) with a uniform window of 7 x 7 nodes, unbiased covariances, K1 = 0.01,
    K2 = 0.03, the border of half a window left out, and the range of the true channel as data
    range. Along a side of fewer than 7 nodes the window has the largest odd number that fits.
    Computed in float64: variances of smooth fields cancel.
    """
    x, y = (as_planes(fields).flatten(0, 1)[:, None] for fields in (prediction, truth))
    height, width = (_window(side) for side in y.shape[2:])
    parts = slices(len(y), max(1, _SSIM_VALUES // y[0].numel()))
    values = [_ssim(x[part].double(), y[part].double(), (height, width)) for part in parts]
    return torch.cat(values).unflatten(0, truth.shape[:2])


def _window(side: int) -> int:
    """Return the window's number of nodes along a side: odd."""
    return min(_WINDOW, side - (side + 1) % 2)


def _ssim(x: Tensor, y: Tensor, window: tuple[int, int]) -> Tensor:
    """Return the SSIM (fields,) of predictions x and truths y (fields, 1, height, width)."""
    data_range = y.amax((1, 2, 3), keepdim=True) - y.amin((1, 2, 3), keepdim=True)
    # A field that does not vary has no range: then rounding errors must not count.
    data_range = torch.maximum(data_range, _ROUNDING * y.abs().amax((1, 2, 3), keepdim=True))
    tiny = torch.finfo(torch.float64).tiny
    c1, c2 = ((k * data_range).square().clamp_min(tiny) for k in (0.01, 0.03))
    mean_x, mean_y, mean_xx, mean_yy, mean_xy = (
        functional.avg_pool2d(field, window, stride=1) for field in (x, y, x * x, y * y, x * y)
    )
    nodes = window[0] * window[1]
    unbiased = nodes / max(nodes - 1, 1)  # a single node has no variance anyway
    var_x = unbiased * (mean_xx - mean_x**2)
    var_y = unbiased * (mean_yy - mean_y**2)
    cov = unbiased * (mean_xy - mean_x * mean_y)
    luminance = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    structure = (2 * cov + c2) / (var_x + var_y + c2)
    return (luminance * structure).mean((1, 2, 3))
