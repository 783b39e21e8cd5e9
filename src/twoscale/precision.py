"""Single-precision products on tensor cores, for networks on whole fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_LOCK = Lock()
_users: list[bool] = []  # what each of those inside found


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
