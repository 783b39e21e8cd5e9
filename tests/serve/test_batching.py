"""The queue: what waits together is computed together, and nothing is lost."""

import asyncio
from threading import Event

import pytest
import torch

from twoscale.serve.batching import Batcher, QueuedCall
from twoscale.serve.limits import Limits, Refusal

WAIT = 30.0


class Recorder:
    """Work that doubles its argument, waits for a sign at first, and remembers its batches."""

    def __init__(self):
        self.sizes = []
        self.started, self.go = Event(), Event()

    def __call__(self, arguments):
        self.sizes.append(len(arguments[0]))
        self.started.set()
        assert self.go.wait(WAIT)
        if bool((arguments[0] < 0).any()):
            raise ValueError("negative")
        return (2 * arguments[0], arguments[0] + 1)

    def call(self, *values, key="a"):
        return QueuedCall(key, self, (torch.tensor(values),))


@pytest.fixture
def work():
    return Recorder()


@pytest.fixture
def batcher(work):
    made = Batcher(Limits(batch_fields=4, queue=5))
    made.start()
    yield made
    work.go.set()
    made.stop()


def busy(batcher, work):
    """Submit a job and return its future once it is being computed."""
    first = batcher.submit(work.call(0.0))
    assert work.started.wait(WAIT)
    return first


def doubled(future):
    return future.result(WAIT)[0].tolist()


def test_what_waits_becomes_one_batch(batcher, work):
    first = busy(batcher, work)
    later = [batcher.submit(work.call(1.0)), batcher.submit(work.call(2.0, 3.0))]
    other = batcher.submit(work.call(4.0, key="b"))
    last = batcher.submit(work.call(5.0))
    work.go.set()
    assert [doubled(one) for one in (first, *later, other, last)] == [
        [0.0],
        [2.0],
        [4.0, 6.0],
        [8.0],
        [10.0],
    ]
    assert last.result()[1].tolist() == [6.0]
    assert work.sizes == [1, 4, 1]  # three of a key together, the other key alone
    assert batcher.batches == 3


def test_a_batch_has_a_most_number_of_fields(batcher, work):
    busy(batcher, work)
    calls = [batcher.submit(work.call(1.0, 2.0, 3.0)) for _ in range(2)]
    large = batcher.submit(work.call(*range(9)))
    work.go.set()
    assert [len(doubled(one)) for one in (*calls, large)] == [3, 3, 9]
    assert work.sizes == [1, 3, 3, 9]


def test_one_that_fails_harms_no_other(batcher, work):
    busy(batcher, work)
    good, bad = batcher.submit(work.call(1.0)), batcher.submit(work.call(-1.0))
    work.go.set()
    assert doubled(good) == [2.0]
    with pytest.raises(ValueError, match="negative"):
        bad.result(WAIT)
    assert work.sizes == [1, 2, 1, 1]


def test_too_many_are_refused(batcher, work):
    busy(batcher, work)
    waiting = [batcher.submit(work.call(1.0)) for _ in range(5)]
    with pytest.raises(Refusal, match="5 requests are waiting already") as refusal:
        batcher.submit(work.call(1.0))
    assert (refusal.value.status, refusal.value.headers) == (503, {"Retry-After": "1"})
    work.go.set()
    assert [doubled(one) for one in waiting] == [[2.0]] * 5


def test_what_was_given_up_is_not_computed(batcher, work):
    busy(batcher, work)
    given_up, kept = batcher.submit(work.call(1.0)), batcher.submit(work.call(2.0))
    assert given_up.cancel()
    work.go.set()
    assert doubled(kept) == [4.0]
    assert work.sizes == [1, 1]


def test_what_was_given_up_leaves_the_queue(batcher, work):
    busy(batcher, work)
    kept, given_up = work.call(1.0), work.call(2.0)
    batcher.submit(kept)

    async def give_up():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.compute(given_up), 0.01)

    asyncio.run(give_up())
    assert batcher.waiting == 1


def test_stopping_refuses_what_waits(work):
    batcher = Batcher(Limits())
    batcher.start()
    first = busy(batcher, work)
    waiting = batcher.submit(work.call(1.0))
    work.go.set()
    batcher.stop()
    assert doubled(first) == [0.0]
    assert waiting.exception(WAIT) is not None or doubled(waiting) == [2.0]
    with pytest.raises(Refusal, match="shutting down"):
        batcher.submit(work.call(1.0))
