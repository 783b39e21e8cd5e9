"""Quiet commands: what they print is dropped, but for the answer that was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

_answers: list[TextIO] = []  # where a quiet command writes its answer; empty if it is not quiet


def is_quiet() -> bool:
    """Say whether only errors and the answer are to be shown."""
    return bool(_answers)


@contextmanager
def muted() -> Iterator[None]:
    """Drop everything that the block prints to stdout, but for answers."""
    _answers.append(sys.stdout)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            yield
    finally:
        _answers.pop()


def print_answer(text: object) -> None:
    """Print what was asked for: JSON, or the path of the result of a quiet command."""
    print(text, file=_answers[-1] if _answers else None)
