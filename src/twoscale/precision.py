"""Single precision: units that keep squares within its range, and products on tensor cores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_LOCK = Lock()
_users: list[bool] = []  # what each of those inside found


def unit_of(size: float) -> float:
    """Return a unit for numbers of this size, a power of four: `size` is from 1/2 to 2 of it.

    Squares of fields of 1e20 or 1e-25 leave the range of single precision; measured in their unit
    they do not. Numbers divided by a power of two, and square roots of a power of four, keep every
    digit: wherever the squares were in range, results stay the same to the last bit.

    >>> unit_of(5.0), unit_of(1e-30) * 4.0**50, unit_of(0.0)
    (4.0, 1.0, 1.0)
    """
    if size == 0 or not math.isfinite(size):
        return 1.0
    _, exponent = math.frexp(size)
    return 4.0 ** (exponent // 2)


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Round the factors of products on CUDA to ten bits (TF32), as convolutions do by default."""
    flags = torch.backends.cuda.matmul
    with _LOCK:
        _users.append(flags.allow_tf32)
        flags.allow_tf32 = True
    try:
        yield
    finally:
        with _LOCK:  # threads may leave in any order: the last one puts back what the first found
            before = _users.pop()
            if not _users:
                flags.allow_tf32 = before


def precision_flags() -> tuple[bool, bool]:
    """Return whether products and convolutions on CUDA round their factors at present."""
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
