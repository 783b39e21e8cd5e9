"""What runs in the workers of a Dask cluster: their set-up, their versions, and their tasks."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from typing import Any

from twoscale._version import __version__
from twoscale.errors import WorkersError
from twoscale.runtime.memory import release_memory
from twoscale.runtime.tasks import Abandoned, Caller, called_by
from twoscale.runtime.threads import one_thread

TOPIC = "twoscale"
"""Dask's name for the messages of tasks to their commands."""


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C to the command, which ends its workers; Dask calls this in its local ones."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silence_dask()


def silence_dask() -> None:
    """Keep Dask's log off the terminal: what matters of it is said in our errors."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def versions() -> dict[str, str]:
    """Return the versions that decide the bytes of a result."""
    import numpy
    import torch

    python = ".".join(map(str, sys.version_info[:2]))
    numerics = {"torch": torch.__version__, "numpy": numpy.__version__}
    return {"twoscale": __version__, "python": python, **numerics}


def check_worker(
    name: str, expected: dict[str, str], threads: int, actual: dict[str, str] | None = None
) -> None:
    """Raise if a worker, by default this one, has other versions than expected or many threads."""
    actual = versions() if actual is None else actual
    for package, version in expected.items():
        if actual.get(package) != version:
            raise WorkersError(
                f"the worker {name} has {package} {actual.get(package)}, the command has "
                f"{version}: install the same versions everywhere"
            )
    if threads > 1:  # the number of torch's threads belongs to the process
        raise WorkersError(
            f"the worker {name} works on {threads} tasks at a time in one process: start it with "
            f"'dask worker --nthreads 1 --nworkers {threads}'"
        )


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

    caller = Caller(waits, lambda message: worker.log_event(TOPIC, [command, message]))
    try:
        with called_by(caller), one_thread():
            return function(*arguments)
    except Abandoned as error:
        raise Reschedule from error
    finally:
        release_memory()
