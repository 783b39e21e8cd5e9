"""Arrays as text of a page, in the number type that the page can afford."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from torch import Tensor

Packed = dict[str, Any]
"""An array in a page: `shape`, `type` (f2, f4, f8 or i4) and little-endian `data` in base 64."""


class Packer:
    """Turns arrays into text and counts the bytes.

    Parameters
    ----------
    small
        Whether weights are rounded to half as many bytes, to float16 as a rule. Not by default.
    """

    def __init__(self, *, small: bool = False) -> None:
        self.small = small
        self.bytes = 0

    def weights(self, values: Tensor) -> Packed:
        """Return fitted numbers: float32, or float16 if the page is to be small."""
        array = values.detach().cpu().numpy()
        return self._packed(array, "f2" if self.small and _fits_half(array) else "f4")

    def exact(self, values: Tensor) -> Packed:
        """Return numbers that need double precision: float64, or float32 in a small page."""
        return self._packed(values.detach().cpu().numpy(), "f4" if self.small else "f8")

    def single(self, values: Tensor | np.ndarray) -> Packed:
        """Return numbers in float32, however small the page is to be."""
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        return self._packed(array, "f4")

    def double(self, values: Tensor) -> Packed:
        """Return numbers in float64, however small the page is to be."""
        return self._packed(values.detach().cpu().numpy(), "f8")

    def half(self, values: np.ndarray) -> Packed:
        """Return numbers that are only looked at, in float16."""
        return self._packed(values, "f2" if _fits_half(values) else "f4")

    def places(self, values: Tensor | np.ndarray) -> Packed:
        """Return whole numbers."""
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        return self._packed(array, "i4")

    def _packed(self, array: np.ndarray, kind: str) -> Packed:
        data = base64.b64encode(np.ascontiguousarray(array, dtype=f"<{kind}").data).decode()
        self.bytes += len(data)
        return {"shape": list(array.shape), "type": kind, "data": data}


def unpacked(packed: Packed) -> np.ndarray:
    """Return the array of a packed one."""
    values = np.frombuffer(base64.b64decode(packed["data"]), f"<{packed['type']}")
    return values.reshape(packed["shape"])


def _fits_half(array: np.ndarray) -> bool:
    """Say whether float16 keeps numbers to about three digits: none too large, few too small."""
    sizes = np.abs(array[array != 0]) if array.size else array
    if not sizes.size:
        return True
    return bool(sizes.max() < 6e4 and np.quantile(sizes, 0.25) > 6e-5)
