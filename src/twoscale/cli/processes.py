"""Commands that run in several processes at once, started by torchrun."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from twoscale.cli.quiet import muted


def in_every_process(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that joins the processes of torchrun; only the first one prints."""

    @wraps(command)
    def run(**options: Any) -> None:
        from twoscale.runtime import processes

        if processes.launched() == 1:
            command(**options)
            return
        with processes.process_group():
            if processes.is_first():
                command(**options)
            else:
                with muted():
                    command(**options)

    return run
