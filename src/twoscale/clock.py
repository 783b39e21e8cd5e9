"""Wall-clock seconds per named stage, honest about work still queued on a GPU; its peak memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch


class Clock:
    """Accumulates seconds per stage; entering and leaving a stage waits for the device."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = now()
        try:
            yield
        finally:
            self.add(name, now() - start)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def add_seconds(*timings: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds per stage of all timings together."""
    total: dict[str, float] = {}
    for timing in timings:
        for stage, seconds in timing.items():
            total[stage] = total.get(stage, 0.0) + seconds
    return total


def forget_device_peak() -> None:
    """Begin to measure the peak of allocated GPU memory anew."""
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def device_peak_gigabytes() -> float | None:
    """Return the peak of allocated GPU memory, or None where no GPU is in use."""
    return torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_initialized() else None


def now() -> float:
    """Return the time in seconds, once the device has done what was asked of it."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()
