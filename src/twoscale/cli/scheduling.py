"""The workers that a command's `--scheduler` names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from twoscale.cli.quiet import is_quiet
from twoscale.runtime.progress import Progress

if TYPE_CHECKING:
    from twoscale.cluster import DaskWorkers


@contextmanager
def workers_at(where: str | None, progress: Progress | None = None) -> Iterator[DaskWorkers | None]:
    """Give the workers at an address, and say where their dashboard is; None without an address.

    Each process of torchrun would open workers of its own, so several processes are refused.
    """
    if where is None:
        yield None
        return
    from twoscale.cluster import connected
    from twoscale.runtime import processes

    processes.refuse_several(
        "a command with --scheduler runs",
        "leave out --scheduler, or start it without torchrun",
        started=processes.launched(),
    )
    with connected(where, progress=progress, tell=None if is_quiet() else _tell) as workers:
        yield workers


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
