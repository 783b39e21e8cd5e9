"""What makes workers able to give the same bytes as this process."""

from __future__ import annotations

import sys
from typing import Any

from twoscale._version import __version__
from twoscale.cluster.scheduler import first_line, workers_now
from twoscale.errors import WorkersError


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
    """Raise if any worker of a client must not do work for this process."""
    try:
        found = client.run(versions)
    except (ImportError, AttributeError) as error:
        raise WorkersError(
            "a worker lacks a package, or has another version of twoscale: install the same "
            f"versions everywhere ({first_line(error)})"
        ) from error
    threads = workers_now(client)
    for name, theirs in found.items():
        check_worker(name, versions(), threads.get(name, 1), theirs)
