"""Wall-clock seconds per stage, including work queued on a GPU; peak GPU memory."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real

import torch

from twoscale.errors import TwoscaleError
from twoscale.runtime.logs import LOGGER

_UNITS = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}


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
        LOGGER.debug("%s: %.3f s", name, seconds)
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def add_seconds(*timings: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds per stage of all timings together."""
    total: dict[str, float] = {}
    for timing in timings:
        for stage, seconds in timing.items():
            total[stage] = total.get(stage, 0.0) + seconds
    return total


def reset_peak_memory() -> None:
    """Start a new measurement of the peak of allocated GPU memory."""
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def device_peak_gigabytes() -> float | None:
    """Return the peak of allocated GPU memory, or None where no GPU is in use."""
    return torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_initialized() else None


def now() -> float:
    """Return the time in seconds, after waiting for all work queued on the GPU."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


def parse_duration(given: float | str) -> float:
    """Return the seconds of a time such as 90, `90s`, `2min` or `1.5 h`.

    >>> parse_duration("2min")
    120.0
    """
    if isinstance(given, Real) and not isinstance(given, bool):
        seconds = float(given)
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(given), re.IGNORECASE)
        unit = _UNITS.get(found[2].lower()) if found else None
        seconds = float(found[1]) * unit if found and unit else 0.0
    if not 0 < seconds < math.inf:
        raise TwoscaleError(f"a time is given like 90s, 2min or 1h, got '{given}'")
    return seconds
