"""Who does the work of a command: workers of `--scheduler`, or processes of torchrun."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any

from twoscale.cli.terminal import is_quiet, muted

if TYPE_CHECKING:
    from twoscale.cluster import DaskWorkers
    from twoscale.runtime.progress import Progress


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


def in_every_process(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that joins the processes of torchrun; only the first one prints."""

    @wraps(command)
    def run(**options: Any) -> None:
        from twoscale.runtime import processes

        if processes.launched() == 1:
            command(**options)
            return
        with processes.process_group(), nullcontext() if processes.is_first() else muted():
            command(**options)

    return run
