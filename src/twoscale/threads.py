"""One thread for small work, where handing it to others costs more; several for files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch's CPU work on one thread inside the block.

    Small factorisations and training steps meet at a barrier every few microseconds; with several
    threads on a busy machine each barrier can cost a scheduling slice, a thousandfold slowdown.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def ahead(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int
) -> Iterator[Result]:
    """Yield function(item) in order, while threads are at work on the next few.

    For work that lets other threads run: reading, decompressing, checksums, a GPU. With no workers
    it is a plain loop.
    """
    if workers < 1:
        yield from map(function, items)
        return
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def file_workers() -> int:
    """Return how many threads to read or write files with."""
    return min(8, os.cpu_count() or 1)
