"""How many threads to use: one for small work, several for files."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Generic, TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

_TRIAL_SIZE = 160  # rows of the matrices that tell whether threads pay off
_TRIALS = 10
_WORTH = 0.5  # one thread is used if it takes at most this share of the time of all


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


@contextmanager
def worthwhile_threads(clock: Callable[[], float] = perf_counter) -> Iterator[None]:
    """Run torch's CPU work inside the block on all threads or on one, whichever is faster now.

    Where other processes use the cores, threads wait for each other at every barrier, and one
    thread can be ten times as fast. Both are timed on ten small factorisations.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    with one_thread():
        alone = _seconds(clock, math.inf)
    if alone < _WORTH * _seconds(clock, alone / _WORTH):
        with one_thread():
            yield
    else:
        yield


def _seconds(clock: Callable[[], float], enough: float) -> float:
    """Return the time of a few factorisations; once it is `enough`, no more are done."""
    matrix = torch.rand(_TRIAL_SIZE, _TRIAL_SIZE, generator=torch.Generator().manual_seed(0))
    matrix = (matrix + matrix.mT).double()
    torch.linalg.eigh(matrix[:8, :8])  # starts threads and loads libraries
    start = clock()
    for _ in range(_TRIALS):
        torch.linalg.eigh(matrix)
        if clock() - start > enough:
            break
    return clock() - start


class SharedSetting(Generic[Item]):
    """A setting of the process that blocks in several threads change to the same value.

    They may end in any order: the last one restores what the first one found.
    """

    def __init__(
        self, read: Callable[[], Item], write: Callable[[Item], object], value: Item
    ) -> None:
        self._read, self._write, self._value = read, write, value
        self._lock = Lock()
        self._before: list[Item] = []  # of each block that is open

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Change the setting inside the block."""
        with self._lock:
            self._before.append(self._read())
            self._write(self._value)
        try:
            yield
        finally:
            with self._lock:
                before = self._before.pop()
                if not self._before:
                    self._write(before)


def prefetch(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int
) -> Iterator[Result]:
    """Yield function(item) in order, while threads compute the next `workers` results.

    For work that releases Python's lock: reading, decompressing, checksums, a GPU. With no workers
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
