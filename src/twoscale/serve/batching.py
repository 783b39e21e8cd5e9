"""One thread that computes, and a queue in which requests that fit together become one batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread

import torch
from torch import Tensor

from twoscale.runtime.logs import LOGGER
from twoscale.serve.limits import Limits, Refusal

Tensors = tuple[Tensor, ...]
Work = Callable[[Tensors], Tensors]
"""Results (b, ...) of arguments (b, ...): those of a sample depend on its own arguments only."""


@dataclass(frozen=True, eq=False)
class QueuedCall:
    """What one request wants computed; calls of one key are computed together."""

    key: Hashable
    work: Work
    arguments: Tensors  # each (samples, ...)
    future: Future[Tensors] = field(default_factory=Future)

    @property
    def samples(self) -> int:
        return len(self.arguments[0])


class Batcher:
    """Computes calls in one thread, as many of a kind at a time as are waiting.

    It never waits for a batch to fill: while one batch is computed, the next one gathers.

    Attributes
    ----------
    batches
        Number of batches so far.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.batches = 0
        self._waiting: deque[QueuedCall] = deque()
        self._changed = Condition()
        self._ends = False
        self._thread = Thread(target=self._compute, name="twoscale-batches", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread once its batch is done; calls that still wait are refused."""
        with self._changed:
            self._ends = True
            for call in self._waiting:
                if call.future.set_running_or_notify_cancel():
                    call.future.set_exception(_shutting_down())
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def waiting(self) -> int:
        """Return the number of calls in the queue."""
        return len(self._waiting)

    def submit(self, call: QueuedCall) -> Future[Tensors]:
        """Queue a call and return its future, or refuse it if too many wait."""
        with self._changed:
            if self._ends:
                raise _shutting_down()
            if len(self._waiting) >= self.limits.queue:
                waiting = len(self._waiting)
                raise Refusal(503, f"{waiting} requests are waiting already: ask again later")
            self._waiting.append(call)
            self._changed.notify_all()
        return call.future

    async def compute(self, call: QueuedCall) -> Tensors:
        """Return the results of a call; one that is given up leaves the queue."""
        try:
            return await asyncio.wrap_future(self.submit(call))
        except asyncio.CancelledError:
            with self._changed, suppress(ValueError):
                self._waiting.remove(call)
            raise

    def _compute(self) -> None:
        while (calls := self._next_batch()) is not None:
            if calls:
                self.batches += 1
                run_together(calls)

    def _next_batch(self) -> list[QueuedCall] | None:
        """Return the oldest call with later ones of its key, once there is one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ends)
            if self._ends:
                return None
            taken: list[QueuedCall] = []
            left: list[QueuedCall] = []
            samples = 0
            for call in self._waiting:
                fits = samples + call.samples <= self.limits.batch_fields
                if not taken or (call.key == taken[0].key and fits):
                    taken.append(call)
                    samples += call.samples
                else:
                    left.append(call)
            self._waiting = deque(left)
        # A request that was given up is cancelled, and nothing is computed for it.
        return [call for call in taken if call.future.set_running_or_notify_cancel()]


def _shutting_down() -> Refusal:
    return Refusal(503, "the server is shutting down: ask again when it is back")


def run_together(calls: Sequence[QueuedCall]) -> None:
    """Compute calls of one key as one batch; if that fails, each alone: one harms no other."""
    try:
        columns = zip(*(call.arguments for call in calls), strict=True)
        stacked = tuple(torch.cat(column) if len(calls) > 1 else column[0] for column in columns)
        samples = [call.samples for call in calls]
        results = zip(*(one.split(samples) for one in calls[0].work(stacked)), strict=True)
    except Exception as error:
        if len(calls) > 1:
            LOGGER.warning(
                "a batch of %d requests failed, each is tried alone: %s", len(calls), error
            )
            for call in calls:
                run_together([call])
        else:
            calls[0].future.set_exception(error)
        return
    for call, result in zip(calls, results, strict=True):
        call.future.set_result(result)
