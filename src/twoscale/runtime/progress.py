"""The function that long work calls to report its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int, str], None]
"""Called as progress(stage, done, total, remark)."""
