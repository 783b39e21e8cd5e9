"""How much memory is free, how much was used, and sizes as text."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import monotonic

import torch

from twoscale.errors import TwoscaleError

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "alloc_failed")
_BEYOND = 1e18  # bytes: more than any machine has
_RELEASE_SECONDS = 0.2  # between two times that freed memory is given back
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def available_memory() -> int:
    """Return the bytes of host memory that are free, including the system's file cache."""
    limit = _group_limit()
    return min(_system_memory(), limit) if limit else _system_memory()


def free_memory(device: torch.device) -> int:
    """Return the bytes that are free on a device; for the CPU those of host memory."""
    if device.type != "cuda":
        return available_memory()
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def require_memory(subject: str, needed: int, advice: str) -> None:
    """Raise if `needed` bytes are more than are free, with what to do about it."""
    free = available_memory()
    if needed > free:
        raise TwoscaleError(
            f"{subject} needs {size_text(needed)} of memory, {size_text(free)} are free: {advice}"
        )


def peak_memory() -> int:
    """Return the most memory that this process ever had resident, in bytes."""
    peak = _kernel("/proc/self/status", "VmHWM")
    if peak is not None:
        return peak
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset
    import resource  # which Windows does not have

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def anonymous_memory() -> int | None:
    """Return the bytes that this process holds beside files; None where the system does not tell.

    Unlike pages of mapped files, the system cannot take this memory back without swapping.
    """
    return _kernel("/proc/self/status", "RssAnon")


def release_memory() -> None:
    """Give freed memory back to the system, unless this was done a moment ago.

    glibc would keep much of what several threads have freed.
    """
    release = _release_call()
    if release is not None and monotonic() - _Released.latest >= _RELEASE_SECONDS:
        _Released.latest = monotonic()
        release(0)


class _Released:
    latest = -1.0  # never yet


@cache
def _release_call() -> Callable[[int], int] | None:
    """Return glibc's function for that; other libraries and systems have none."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


def _system_memory() -> int:
    """Return the machine's available bytes; on Linux without psutil, which images may lack."""
    available = _kernel("/proc/meminfo", "MemAvailable")
    if available is not None:
        return available
    import psutil

    return psutil.virtual_memory().available


def _kernel(path: str, name: str) -> int | None:
    """Return the bytes of an entry of one of the Linux kernel's tables, if there is one."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]
    return 1024 * sizes[0] if sizes else None


def _group_limit() -> int | None:
    """Return the memory a container may use, if it is limited."""
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def is_out_of_memory(error: BaseException | None) -> bool:
    """Say whether an error, or one that it was raised from, means that memory ran out."""
    while error is not None:
        words = str(error).lower()
        if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
            return True
        if any(text in words for text in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def parse_size(text: str) -> int:
    """Return the bytes of a size such as `800MB` or `1.5 GB`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", text, re.IGNORECASE)
    size = float(found[1]) * _UNITS[found[2].upper()] if found else 0
    if not 1 <= size < _BEYOND:
        raise TwoscaleError(f"a size of memory is given like 800MB or 1.5GB, got '{text}'")
    return round(size)


def size_text(size: float) -> str:
    """Return bytes as text such as `328 kB`: three digits, rounded up; `parse_size` reads it."""
    for unit in _UNITS:
        shown = size / _UNITS[unit]
        step = 10.0 ** max(0, 2 - math.floor(math.log10(max(shown, 1.0))))
        shown = math.ceil(round(shown * step, 6)) / step
        if shown < 1000:
            break
    return f"{shown:g} {unit.replace('K', 'k')}B"
