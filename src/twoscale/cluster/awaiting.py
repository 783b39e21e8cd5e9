"""Waiting for tasks while there may be no worker that could do them."""

from __future__ import annotations

import warnings
from time import monotonic
from typing import Any

from twoscale.errors import TwoscaleError, TwoscaleWarning

PATIENCE = 300.0  # seconds for which workers or a scheduler that went away are waited for
_LOOK = 10.0  # seconds between two looks at the workers


def minutes() -> str:
    """Return in words how long is waited."""
    return f"up to {PATIENCE / 60:.0f} minutes"


class Lookout:
    """Warns if there are no workers while results are waited for, and raises in the end."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.latest = monotonic()
        self.alone: float | None = None  # since when there are no workers

    def look(self) -> None:
        """Look whether there are workers, if the last look was some time ago."""
        if monotonic() - self.latest < _LOOK:
            return
        self.latest = monotonic()
        if self.client.nthreads():
            self.alone = None
        elif self.alone is None:
            self.alone = monotonic()
            warnings.warn(
                f"no workers are left: waiting {minutes()} for others",
                TwoscaleWarning,
                stacklevel=2,
            )
        elif monotonic() - self.alone > PATIENCE:
            raise TwoscaleError(
                "no workers are left, and no others came: start some with 'dask worker', and run "
                "the same command again"
            )


def awaited(future: Any) -> Any:
    """Return a task's result."""
    lookout = Lookout(future.client)
    while True:
        try:
            return future.result(timeout=_LOOK)
        except TimeoutError:
            if future.done():  # meanwhile, or the error is the task's own
                return future.result()
        lookout.look()
