"""Questions to a Dask scheduler, which may go away at any time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from twoscale.errors import WorkersError

ANSWER_SECONDS = 30.0  # in which a scheduler answers, even a busy one


class UnreachableSchedulerError(WorkersError):
    """The scheduler does not answer, or has no workers; both may come."""


def workers_now(client: Any) -> dict[str, int]:
    """Return the addresses of the workers that there are now, and how many threads each has."""
    with asking(client):
        return dict(client.nthreads(callback_timeout=ANSWER_SECONDS))


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


def lost_connection_errors() -> tuple[type[BaseException], ...]:
    """Return the types of errors that tell of a lost connection to the scheduler."""
    from distributed.comm import CommClosedError

    return (UnreachableSchedulerError, CommClosedError, CancelledError, TimeoutError)


def close_client(client: Any, *, seconds: float) -> None:
    """Close a client; one whose scheduler does not answer is given up after some seconds."""
    with suppress(Exception):  # what ended the connection is told, not this
        client.close(timeout=seconds)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, or its type."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
