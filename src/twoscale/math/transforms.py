"""Two-dimensional sine and cosine transforms of batches, orthonormal, of any size.

On a CPU SciPy's fast transforms are used; on a GPU, where a dense product of the small
transform matrices is faster than padded FFTs at every size of interest, matrix products.
"""

from __future__ import annotations

import math
from functools import lru_cache

import scipy.fft
import torch
from torch import Tensor


def sine_transform(fields: Tensor) -> Tensor:
    """Return the orthonormal DST-I of `fields` (batch, rows, columns); it is its own inverse."""
    if fields.device.type == "cpu":
        return _scipy_transform(scipy.fft.dstn, fields, kind=1)
    rows, columns = (sine_matrix(size, fields.device) for size in fields.shape[1:])
    return rows.to(fields.dtype) @ fields @ columns.to(fields.dtype)


def inverse_cosine_transform(coefficients: Tensor) -> Tensor:
    """Return fields from their orthonormal DCT-II `coefficients` (batch, rows, columns)."""
    if coefficients.device.type == "cpu":
        return _scipy_transform(scipy.fft.idctn, coefficients, kind=2)
    rows, columns = (_cosine_matrix(size, coefficients.device) for size in coefficients.shape[1:])
    return rows.T.to(coefficients.dtype) @ coefficients @ columns.to(coefficients.dtype)


def _scipy_transform(transform, fields: Tensor, *, kind: int) -> Tensor:  # type: ignore[no-untyped-def]
    workers = torch.get_num_threads() if fields.numel() > 2**16 else 1
    array = transform(fields.numpy(), type=kind, axes=(1, 2), norm="ortho", workers=workers)
    return torch.from_numpy(array)


@lru_cache(maxsize=8)
def sine_matrix(size: int, device: torch.device) -> Tensor:
    """Return the orthonormal DST-I (size, size), float64: symmetric, and its own inverse."""
    k = torch.arange(1, size + 1, dtype=torch.float64)
    matrix = torch.sin(math.pi / (size + 1) * torch.outer(k, k)) * math.sqrt(2.0 / (size + 1))
    return matrix.to(device)


@lru_cache(maxsize=8)
def _cosine_matrix(size: int, device: torch.device) -> Tensor:
    """Rows are the DCT-II basis vectors."""
    k = torch.arange(size, dtype=torch.float64)
    matrix = torch.cos(math.pi / size * torch.outer(k, k + 0.5)) * math.sqrt(2.0 / size)
    matrix[0] /= math.sqrt(2.0)
    return matrix.to(device)
