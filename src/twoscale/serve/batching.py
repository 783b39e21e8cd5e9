"""A queue in which requests that fit together become one batch, and one thread that computes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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

    @property
    def samples(self) -> int:
        return len(self.arguments[0])


class Batcher:
    """Computes calls in one thread, as many of a kind at a time as are waiting.

    It never waits for a batch to fill: while one batch is computed, the next one gathers. The queue
    belongs to the event loop, so that it needs no lock.

    Attributes
    ----------
    batches
        Number of batches so far.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.batches = 0
        self._waiting: dict[
            QueuedCall, asyncio.Future[Tensors]
        ] = {}  # in the order of their coming
        self._thread = ThreadPoolExecutor(1, "twoscale-batches")
        self._running: asyncio.Task[None] | None = None
        self._ends = False

    def stop(self) -> None:
        """End the thread once its batch is done; calls that still wait are refused."""
        self._ends = True
        for result in self._waiting.values():
            if not result.done():
                result.set_exception(_shutting_down())
        self._waiting.clear()
        self._thread.shutdown()

    @property
    def waiting(self) -> int:
        """Return the number of calls in the queue."""
        return len(self._waiting)

    async def compute(self, call: QueuedCall) -> Tensors:
        """Return the results of a call, or refuse it if too many wait.

        A call that is given up leaves the queue, and nothing is computed for it.
        """
        if self._ends:
            raise _shutting_down()
        if self.waiting >= self.limits.queue:
            raise Refusal(503, f"{self.waiting} requests are waiting already: ask again later")
        result = self._waiting[call] = asyncio.get_running_loop().create_future()
        if self._running is None:
            self._running = asyncio.create_task(self._compute())
        try:
            return await result
        finally:
            self._waiting.pop(call, None)

    async def _compute(self) -> None:
        while self._waiting:
            calls = self._next_batch()
            futures = [self._waiting.pop(call) for call in calls]
            self.batches += 1
            loop = asyncio.get_running_loop()
            results = await loop.run_in_executor(self._thread, run_together, calls)
            for future, result in zip(futures, results, strict=True):
                if future.done():  # given up
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
        self._running = None

    def _next_batch(self) -> list[QueuedCall]:
        """Return the oldest call with later ones of its key."""
        first, *others = self._waiting
        taken, samples = [first], first.samples
        for call in others:
            if call.key == first.key and samples + call.samples <= self.limits.batch_fields:
                taken.append(call)
                samples += call.samples
        return taken


def _shutting_down() -> Refusal:
    return Refusal(503, "the server is shutting down: ask again when it is back")


def run_together(calls: Sequence[QueuedCall]) -> list[Tensors | Exception]:
    """Return the results of calls of one key, computed as one batch.

    If that fails, each is computed alone, so that one harms no other.
    """
    try:
        columns = zip(*(call.arguments for call in calls), strict=True)
        stacked = tuple(torch.cat(column) if len(calls) > 1 else column[0] for column in columns)
        samples = [call.samples for call in calls]
        return [*zip(*(whole.split(samples) for whole in calls[0].work(stacked)), strict=True)]
    except Exception as error:
        if len(calls) == 1:
            return [error]
        LOGGER.warning("a batch of %d requests failed, each is tried alone: %s", len(calls), error)
        return [result for call in calls for result in run_together([call])]
