"""How much memory there is, and sizes as people write them."""

from __future__ import annotations

import os
import re

from twoscale.errors import TwoscaleError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def available_memory() -> int:
    """Return the bytes of memory that are free for use on this machine."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return 8 * 10**9


def parse_size(text: str) -> int:
    """Return the bytes of a size such as `800MB` or `1.5 GB`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", text, re.IGNORECASE)
    size = round(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if size < 1:
        raise TwoscaleError(f"a size of memory is given like 800MB or 1.5GB, got '{text}'")
    return size
