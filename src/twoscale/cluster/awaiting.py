"""Waiting for a task while there may be no worker that could do it."""

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


def awaited(future: Any) -> Any:
    """Return a task's result; without any worker, warn at first and raise in the end."""
    alone: float | None = None  # since when there are no workers
    while True:
        try:
            return future.result(timeout=_LOOK)
        except TimeoutError:
            if future.done():  # meanwhile, or the error is the task's own
                return future.result()
        if future.client.nthreads():
            alone = None
        elif alone is None:
            alone = monotonic()
            warnings.warn(
                f"no workers are left: waiting {minutes()} for others",
                TwoscaleWarning,
                stacklevel=2,
            )
        elif monotonic() - alone > PATIENCE:
            raise TwoscaleError(
                "no workers are left, and no others came: start some with 'dask worker', and run "
                "the same command again"
            )
