"""What makes workers able to give the same bytes as this process."""

from __future__ import annotations

import sys
from typing import Any

from twoscale._version import __version__
from twoscale.cluster.scheduler import UnreachableSchedulerError, asking, first_line, workers_now
from twoscale.errors import WorkersError

_IMPORT_SECONDS = 120  # in which a worker imports torch, even from a slow disk


def versions() -> dict[str, str]:
    """Return the versions that decide the bytes of a result."""
    import numpy
    import torch

    python = ".".join(map(str, sys.version_info[:2]))
    return {
        "twoscale": __version__,
        "python": python,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }


def check_worker(
    name: str, expected: dict[str, str], threads: int, found: dict[str, str] | None = None
) -> None:
    """Raise if a worker has other versions than expected, by default this one, or many threads."""
    theirs = versions() if found is None else found
    for package, version in expected.items():
        if theirs.get(package) != version:
            raise WorkersError(
                f"the worker {name} has {package} {theirs.get(package)}, the command has "
                f"{version}: install the same versions everywhere"
            )
    if threads > 1:  # the number of torch's threads belongs to the process
        raise WorkersError(
            f"the worker {name} works on {threads} tasks at a time in one process: start it with "
            f"'dask worker --nthreads 1 --nworkers {threads}'"
        )


def check_workers(client: Any) -> None:
    """Raise WorkersError if any worker of a client must not do work for this process."""
    answers = _versions_of_workers(client)
    threads = workers_now(client)
    for name in sorted(threads.keys() & answers.keys()):  # one that left does no work
        if isinstance(answers[name], OSError):  # the scheduler could not ask it
            raise UnreachableSchedulerError(
                f"the worker {name} does not answer ({first_line(answers[name])})"
            )
        if isinstance(answers[name], Exception):
            raise _cannot_work(f"the worker {name}", answers[name])
        check_worker(name, versions(), threads[name], answers[name])


def _versions_of_workers(client: Any) -> dict[str, Any]:
    """Return the versions that each worker has, or the error that kept it from telling them.

    A worker imports this module to tell its versions. The error of one that cannot comes as an
    Exception with the text of the worker's own error, whatever the type of that was.
    """
    try:
        with asking(client):
            return dict(client.run(versions, on_error="return", callback_timeout=_IMPORT_SECONDS))
    except WorkersError:
        raise
    except Exception as error:  # an error of a worker that cannot even be read here
        raise _cannot_work("a worker", error) from error


def _cannot_work(name: str, error: Exception) -> WorkersError:
    needed = ", ".join(f"{package} {version}" for package, version in versions().items())
    return WorkersError(
        f"{name} cannot tell its versions ({first_line(error)}): install {needed} there, as here"
    )
