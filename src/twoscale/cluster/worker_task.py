"""A task as a worker of a Dask cluster does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twoscale.cluster.checks import check_worker
from twoscale.runtime.memory import release_memory
from twoscale.runtime.tasks import Abandoned, Caller, called_by
from twoscale.runtime.threads import one_thread

TOPIC = "twoscale"
"""Dask's name for the messages of tasks to their commands."""


def do_task(
    versions: dict[str, str], command: str, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Return function(*arguments), done by one thread, if the worker has these versions.

    `command` names who hears the messages of the task. A task that nobody waits for may end with
    Abandoned; should Dask want it after all, it is done again.
    """
    from distributed import Reschedule, get_worker

    worker = get_worker()
    check_worker(worker.address, versions, worker.state.nthreads)
    key = worker.get_current_task()

    def waits() -> bool:
        task = worker.state.tasks.get(key)
        ends = worker.status.name in ("closing", "closed", "failed")  # or it lost the scheduler
        return not ends and task is not None and task.state != "cancelled"

    def tell(message: Any) -> None:
        worker.log_event(TOPIC, [command, message])

    try:
        with called_by(Caller(waits, tell)), one_thread():
            return function(*arguments)
    except Abandoned as error:
        raise Reschedule from error
    finally:
        release_memory()
