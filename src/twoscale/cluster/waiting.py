"""Waiting for tasks while there may be no worker that could do them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from twoscale.cluster.checks import check_workers
from twoscale.cluster.scheduler import lost_connection_errors, workers_now
from twoscale.errors import TwoscaleError, TwoscaleWarning, WorkersError

PATIENCE = 300.0  # seconds for which workers or a scheduler that went away are waited for
_CHECK = 10.0  # seconds between two questions for the workers
_TICK = 1.0  # seconds between two calls while results are waited for


class LostItemError(WorkersError):
    """Workers died of one item, or lacked the memory for it; others may be able to go on."""


def minutes() -> str:
    """Return in words how long is waited."""
    return f"up to {PATIENCE / 60:.0f} minutes"


class WorkerWatch:
    """Warns if there are no workers while results are waited for, and raises in the end."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._latest = monotonic()
        self._without_workers_since: float | None = None

    def check(self) -> None:
        """Ask whether there are workers, if the last question was some time ago."""
        if monotonic() - self._latest < _CHECK:
            return
        self._latest = monotonic()
        if workers_now(self._client):
            self._without_workers_since = None
        elif self._without_workers_since is None:
            self._without_workers_since = monotonic()
            warnings.warn(
                f"no workers are left: waiting {minutes()} for others",
                TwoscaleWarning,
                stacklevel=2,
            )
        elif monotonic() - self._without_workers_since > PATIENCE:
            raise WorkersError(
                "no workers are left, and no others came: start some with 'dask worker', and run "
                "the same command again"
            )


def wait_for_result(future: Any) -> Any:
    """Return a task's result, or raise its error."""
    watch = WorkerWatch(future.client)
    while True:
        try:
            return future.result(timeout=_CHECK)
        except TimeoutError:
            if future.done():  # meanwhile, or the error is the task's own
                return future.result()
        watch.check()


def task_result(future: Any) -> Any:
    """Return a task's result, or raise its error in words."""
    from distributed.scheduler import KilledWorker

    try:
        return wait_for_result(future)
    except KilledWorker as error:
        raise LostItemError(
            "several workers died one after the other while they did the same work: most often "
            "they were out of memory; give them more, or use fewer per machine"
        ) from error
    except MemoryError as error:
        raise LostItemError("a worker is out of memory: give it more, or use fewer") from error
    except Exception as error:
        if not isinstance(error, (TwoscaleError, *lost_connection_errors())):
            check_workers(future.client)  # another version may lack what was asked for
        raise


def first_done(client: Any, futures: Sequence[Any], waiting: Callable[[], None] | None) -> int:
    """Return the index of a future that is done; call `waiting` once a second until then."""
    from distributed import wait

    watch = WorkerWatch(client)
    while True:
        for index, future in enumerate(futures):
            if future.done():
                return index
        try:
            with client.as_current():
                wait(futures, timeout=_TICK, return_when="FIRST_COMPLETED")
        except TimeoutError:
            watch.check()
            if waiting:
                waiting()
