"""Structural similarity of fields."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from twoscale.fields.source import slices

_SSIM_VALUES = 2**21  # nodes at a time: some 250 MB of work space


def structural_similarity(prediction: Tensor, truth: Tensor, *, window: int = 7) -> Tensor:
    """Return the SSIM (batch,) of each field, data range = the true field's range.

    Wang et al. (2004) with a uniform window, unbiased covariances, K1 = 0.01, K2 = 0.03 and the
    border of half a window left out. Computed in float64: variances of smooth fields cancel.
    """
    parts = slices(len(truth), max(1, _SSIM_VALUES // truth[0].numel()))
    return torch.cat([_ssim(prediction[part], truth[part], window) for part in parts])


def _ssim(prediction: Tensor, truth: Tensor, window: int) -> Tensor:
    x, y = prediction.double()[:, None], truth.double()[:, None]
    data_range = truth.double().amax((1, 2)) - truth.double().amin((1, 2))
    tiny = torch.finfo(torch.float64).tiny
    c1, c2 = ((k * data_range)[:, None, None, None].square().clamp_min(tiny) for k in (0.01, 0.03))
    mean_x, mean_y, mean_xx, mean_yy, mean_xy = (
        functional.avg_pool2d(field, window, stride=1) for field in (x, y, x * x, y * y, x * y)
    )
    unbiased = window**2 / (window**2 - 1)
    var_x = unbiased * (mean_xx - mean_x**2)
    var_y = unbiased * (mean_yy - mean_y**2)
    cov = unbiased * (mean_xy - mean_x * mean_y)
    luminance = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    structure = (2 * cov + c2) / (var_x + var_y + c2)
    return (luminance * structure).mean((1, 2, 3))
