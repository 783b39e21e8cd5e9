"""One thread that computes, and a queue in which requests that fit together become one batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread

import torch
from torch import Tensor

from twoscale.runtime.logs import LOGGER
from twoscale.serve.limits import Limits, busy

Tensors = tuple[Tensor, ...]
Work = Callable[[Tensors], Tensors]
"""Results (b, ...) of arguments (b, ...): those of a sample depend on its own arguments only."""


@dataclass(frozen=True, eq=False)
class Job:
    """What one request wants computed; jobs of one key are computed together."""

    key: Hashable
    work: Work
    arguments: Tensors  # each (samples, ...)
    future: Future[Tensors] = field(default_factory=Future)

    @property
    def samples(self) -> int:
        return len(self.arguments[0])


class Batcher:
    """Computes jobs in one thread, as many of a kind at a time as are waiting.

    It never waits for a batch to fill: while one batch is computed, the next one gathers.

    Attributes
    ----------
    batches, computed
        Number of batches so far, and of the jobs in them.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.batches = 0
        self.computed = 0
        self._waiting: deque[Job] = deque()
        self._changed = Condition()
        self.ends = False
        self._thread = Thread(target=self._compute, name="twoscale-batches", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread once its batch is done; jobs that still wait are cancelled."""
        with self._changed:
            self.ends = True
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def waiting(self) -> int:
        """Return the number of jobs in the queue."""
        return len(self._waiting)

    def submit(self, job: Job) -> Future[Tensors]:
        """Queue a job and return its future, or refuse it if too many wait."""
        with self._changed:
            if self.ends:
                raise busy("the server is shutting down: ask again when it is back")
            if len(self._waiting) >= self.limits.queue:
                raise busy(f"{len(self._waiting)} requests are waiting already: ask again later")
            self._waiting.append(job)
            self._changed.notify_all()
        return job.future

    def discard(self, job: Job) -> None:
        """Take a job that was given up out of the queue, so that its arguments are freed."""
        with self._changed, suppress(ValueError):
            self._waiting.remove(job)

    def _compute(self) -> None:
        while (jobs := self._next_batch()) is not None:
            if jobs:
                self.batches += 1
                self.computed += len(jobs)
                run_together(jobs)

    def _next_batch(self) -> list[Job] | None:
        """Return the oldest job with later ones of its key, once there is one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.ends)
            if self.ends:
                return None
            taken: list[Job] = []
            left: list[Job] = []
            samples = 0
            for job in self._waiting:
                fits = samples + job.samples <= self.limits.batch_fields
                if not taken or (job.key == taken[0].key and fits):
                    taken.append(job)
                    samples += job.samples
                else:
                    left.append(job)
            self._waiting = deque(left)
        # A request that was given up is cancelled, and nothing is computed for it.
        return [job for job in taken if job.future.set_running_or_notify_cancel()]


def run_together(jobs: Sequence[Job]) -> None:
    """Compute jobs of one key as one batch; if that fails, each alone: one harms no other."""
    try:
        columns = zip(*(job.arguments for job in jobs), strict=True)
        stacked = tuple(torch.cat(column) if len(jobs) > 1 else column[0] for column in columns)
        samples = [job.samples for job in jobs]
        results = zip(*(one.split(samples) for one in jobs[0].work(stacked)), strict=True)
    except Exception as error:
        if len(jobs) > 1:
            LOGGER.warning(
                "a batch of %d requests failed, each is tried alone: %s", len(jobs), error
            )
            for job in jobs:
                run_together([job])
        else:
            jobs[0].future.set_exception(error)
        return
    for job, result in zip(jobs, results, strict=True):
        job.future.set_result(result)
