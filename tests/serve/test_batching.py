"""The queue: what waits together is computed together, and nothing is lost."""

import asyncio
from threading import Event

import pytest
import torch

from twoscale.serve.batching import Batcher, QueuedCall
from twoscale.serve.limits import Limits, Refusal

WAIT = 30.0


class Queue:
    """A queue whose work doubles its argument, waits for a sign at first, and remembers batches."""

    def __init__(self, limits=None):
        self.batcher = Batcher(limits or Limits(batch_fields=4, queue=5))
        self.sizes = []
        self.started, self.go = Event(), Event()

    def work(self, arguments):
        self.sizes.append(len(arguments[0]))
        self.started.set()
        assert self.go.wait(WAIT)
        if bool((arguments[0] < 0).any()):
            raise ValueError("negative")
        return (2 * arguments[0], arguments[0] + 1)

    async def call(self, *values, key="a"):
        result = await self.batcher.compute(QueuedCall(key, self.work, (torch.tensor(values),)))
        return result[0].tolist()

    async def begun(self, *values, key="a"):
        """Return a task that has joined the queue."""
        task = asyncio.create_task(self.call(*values, key=key))
        await asyncio.sleep(0)
        return task

    async def busy(self):
        """Return the task of a call once it is being computed."""
        first = await self.begun(0.0)
        assert await asyncio.to_thread(self.started.wait, WAIT)
        return first


def run(scenario, limits=None):
    """Run what happens to a queue, and return the queue."""
    queue = Queue(limits)

    async def whole():
        try:
            await scenario(queue)
        finally:
            queue.go.set()
            queue.batcher.stop()

    asyncio.run(whole())
    return queue


def test_what_waits_becomes_one_batch():
    async def scenario(queue):
        tasks = [await queue.busy(), await queue.begun(1.0), await queue.begun(2.0, 3.0)]
        tasks += [await queue.begun(4.0, key="b"), await queue.begun(5.0)]
        queue.go.set()
        assert await asyncio.gather(*tasks) == [[0.0], [2.0], [4.0, 6.0], [8.0], [10.0]]
        assert queue.batcher.batches == 3

    assert run(scenario).sizes == [1, 4, 1]  # three of a key together, the other key alone


def test_a_batch_has_a_most_number_of_fields():
    async def scenario(queue):
        tasks = [await queue.busy(), await queue.begun(1.0, 2.0, 3.0)]
        tasks += [await queue.begun(1.0, 2.0, 3.0), await queue.begun(*range(9))]
        queue.go.set()
        assert [len(found) for found in await asyncio.gather(*tasks)] == [1, 3, 3, 9]

    assert run(scenario).sizes == [1, 3, 3, 9]


def test_one_that_fails_harms_no_other():
    async def scenario(queue):
        tasks = [await queue.busy(), await queue.begun(1.0), await queue.begun(-1.0)]
        queue.go.set()
        _, good, bad = await asyncio.gather(*tasks, return_exceptions=True)
        assert good == [2.0]
        assert isinstance(bad, ValueError)

    assert run(scenario).sizes == [1, 2, 1, 1]


def test_too_many_are_refused():
    async def scenario(queue):
        tasks = [await queue.busy(), *[await queue.begun(1.0) for _ in range(5)]]
        with pytest.raises(Refusal, match="5 requests are waiting already") as refusal:
            await queue.call(1.0)
        assert (refusal.value.status, refusal.value.headers) == (503, {"Retry-After": "1"})
        queue.go.set()
        assert await asyncio.gather(*tasks) == [[0.0], *[[2.0]] * 5]

    run(scenario)


def test_what_was_given_up_leaves_the_queue_and_is_not_computed():
    async def scenario(queue):
        await queue.busy()
        given_up, kept = await queue.begun(1.0), await queue.begun(2.0)
        given_up.cancel()
        await asyncio.wait([given_up])
        assert queue.batcher.waiting == 1
        queue.go.set()
        assert await kept == [4.0]

    assert run(scenario).sizes == [1, 1]


def test_stopping_refuses_what_waits():
    async def scenario(queue):
        first, waiting = await queue.busy(), await queue.begun(1.0)
        queue.go.set()
        queue.batcher.stop()
        assert await first == [0.0]
        for refused in (waiting, queue.call(1.0)):
            with pytest.raises(Refusal, match="shutting down"):
                await refused

    run(scenario, Limits())
