"""Arrays as text of a page, in the number type that the page can afford."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from torch import Tensor

PackedArray = dict[str, Any]
"""An array in a page: `shape`, `type` (f2, f4, f8 or i4) and little-endian `data` in base 64."""

_TYPES = {
    "single": ("f4", "f4"),
    "double": ("f8", "f8"),
    "half": ("f2", "f2"),  # where float16 keeps three digits: for numbers that are looked at
    "weights": ("f4", "f2"),  # of a network or representation
    "exact": ("f8", "f4"),  # what should have double precision
    "places": ("i4", "i4"),  # whole numbers
}
"""The types of numbers by their use, in a large page and in a small one."""


class ArrayPacker:
    """Turns arrays into text and counts the bytes.

    Parameters
    ----------
    small
        Whether weights are rounded to half as many bytes, to float16 as a rule. Not by default.
    """

    def __init__(self, *, small: bool = False) -> None:
        self.small = small
        self.bytes = 0

    def __call__(self, values: Tensor | np.ndarray, use: str = "single") -> PackedArray:
        """Return an array as text, with the type of numbers that its use needs."""
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        kind = _TYPES[use][self.small]
        if kind == "f2" and not _fits_half(array):
            kind = "f4"
        data = base64.b64encode(np.ascontiguousarray(array, dtype=f"<{kind}").data).decode()
        self.bytes += len(data)
        return {"shape": list(array.shape), "type": kind, "data": data}

    def attributes(self, holder: Any, *names: str, use: str = "single") -> dict[str, PackedArray]:
        """Return arrays that an object has as attributes, by their names."""
        return {name: self(getattr(holder, name), use) for name in names}


def unpacked(packed: PackedArray) -> np.ndarray:
    """Return the array of a packed one."""
    values = np.frombuffer(base64.b64decode(packed["data"]), f"<{packed['type']}")
    return values.reshape(packed["shape"])


def _fits_half(array: np.ndarray) -> bool:
    """Say whether float16 keeps numbers to about three digits: none too large, few too small."""
    sizes = np.abs(array[array != 0]) if array.size else array
    if not sizes.size:
        return True
    return bool(sizes.max() < 6e4 and np.quantile(sizes, 0.25) > 6e-5)
