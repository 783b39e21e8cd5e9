"""Wall-clock seconds per named stage, honest about work still queued on a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Clock:
    """Accumulates seconds per stage; entering and leaving a stage waits for the device."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = _now()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + _now() - start


def _now() -> float:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()
