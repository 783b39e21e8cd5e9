"""One observation on a dataset or run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_SHOWN = 5  # places that a sentence names, at most


@dataclass(frozen=True)
class Finding:
    """One observation: how bad it is, what it is about, what was seen, and what to do.

    `level` is ok, note (worth knowing), warning (likely a mistake, or a larger error) or error (it
    cannot be used). `code` is a short name that stays the same, for programs.
    """

    level: str
    code: str
    message: str
    advice: str = ""

    @property
    def text(self) -> str:
        """Return the sentence with its advice."""
        return f"{self.message}: {self.advice}" if self.advice else self.message


def some(items: Sequence[Any], what: str = "place") -> str:
    """Return how many there are and the first of them.

    >>> some([3, 4], "sample")
    '2 samples (3, 4)'
    """
    shown = ", ".join(str(item) for item in items[:_SHOWN])
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return f"{len(items)} {what}{'s' if len(items) != 1 else ''} ({shown}{more})"
