"""Questions to a Dask scheduler, which may go away or lose its workers at any time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from twoscale.cluster.worker import check_worker, versions
from twoscale.errors import TwoscaleError, TwoscaleWarning, WorkersError

ANSWER_SECONDS = 30.0  # in which a scheduler answers, even a busy one
PATIENCE = 300.0  # seconds for which workers or a scheduler that went away are waited for
_IMPORT_SECONDS = 120  # in which a worker imports torch, even from a slow disk
_CHECK = 10.0  # seconds between two questions for the workers
_TICK = 1.0  # seconds between two calls while results are waited for


class UnreachableSchedulerError(WorkersError):
    """The scheduler does not answer, or has no workers; both may come."""


class LostItemError(WorkersError):
    """Workers died of one item, or lacked the memory for it; others may be able to go on."""


def lost_connection_errors() -> tuple[type[BaseException], ...]:
    """Return the types of errors that tell of a lost connection to the scheduler."""
    from distributed.comm import CommClosedError

    return (UnreachableSchedulerError, CommClosedError, CancelledError, TimeoutError)


@contextmanager
def asking(client: Any) -> Iterator[None]:
    """Raise UnreachableSchedulerError if what the block asks of the scheduler is not answered.

    Dask closes the client of a scheduler that is away for long. The methods of a closed client then
    raise errors of many types.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or client.status in ("closing", "closed"):
            raise UnreachableSchedulerError(
                f"the Dask scheduler or one of its workers does not answer ({first_line(error)})"
            ) from error
        raise


def workers_now(client: Any) -> dict[str, int]:
    """Return the addresses of the workers that there are now, and how many threads each has."""
    with asking(client):
        return dict(client.nthreads(callback_timeout=ANSWER_SECONDS))


def check_workers(client: Any) -> None:
    """Raise WorkersError if any worker of a client must not do work for this process.

    A worker imports the module of `versions` to tell its versions. The error of one that cannot
    comes as an Exception with the text of the worker's own error, whatever the type of that was.
    """
    try:
        with asking(client):
            answers = client.run(versions, on_error="return", callback_timeout=_IMPORT_SECONDS)
    except WorkersError:
        raise
    except Exception as error:  # an error of a worker that cannot even be read here
        raise _cannot_work("a worker", error) from error
    threads = workers_now(client)
    for name in sorted(threads.keys() & answers.keys()):  # one that left does no work
        answer = answers[name]
        if isinstance(answer, OSError):  # the scheduler could not ask it
            raise UnreachableSchedulerError(
                f"the worker {name} does not answer ({first_line(answer)})"
            )
        if isinstance(answer, Exception):
            raise _cannot_work(f"the worker {name}", answer)
        check_worker(name, versions(), threads[name], answer)


def _cannot_work(name: str, error: Exception) -> WorkersError:
    needed = ", ".join(f"{package} {version}" for package, version in versions().items())
    return WorkersError(
        f"{name} cannot tell its versions ({first_line(error)}): install {needed} there, as here"
    )


def close_client(client: Any, *, seconds: float) -> None:
    """Close a client; one whose scheduler does not answer is given up after some seconds."""
    with suppress(Exception):  # what ended the connection is told, not this
        client.close(timeout=seconds)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, or its type."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def patience() -> str:
    """Return in words how long workers or a scheduler are waited for."""
    return f"up to {PATIENCE / 60:.0f} minutes"


class _WorkerWatch:
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
            words = f"no workers are left: waiting {patience()} for others"
            warnings.warn(words, TwoscaleWarning, stacklevel=2)
        elif monotonic() - self._without_workers_since > PATIENCE:
            raise WorkersError(
                "no workers are left, and no others came: start some with 'dask worker', and run "
                "the same command again"
            )


def task_result(future: Any) -> Any:
    """Return a task's result when it is there, or raise its error in words."""
    from distributed.scheduler import KilledWorker

    watch = _WorkerWatch(future.client)
    try:
        while True:
            try:
                return future.result(timeout=_CHECK)
            except TimeoutError:
                if future.done():  # meanwhile, or the error is the task's own
                    return future.result()
            watch.check()
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

    watch = _WorkerWatch(client)
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
