import threading

import pytest
import torch

from twoscale.runtime.threads import SharedSetting, one_thread, prefetch, worthwhile_threads

pytestmark = pytest.mark.usefixtures("two_threads")
DEADLINE = 60  # seconds, after which a test that would hang fails


def test_there_is_one_thread_inside_and_as_many_as_before_outside_also_after_an_error():
    with one_thread():
        with pytest.raises(RuntimeError, match="boom"), one_thread():
            raise RuntimeError("boom")
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


# Work done ahead


any_workers = pytest.mark.parametrize("workers", [0, 1, 2, 5])


@any_workers
@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_results_come_in_order_and_few_items_are_taken_ahead(workers, count):
    """At a time as many as there are workers, and one."""
    lead, got = [0], []

    def items():
        for taken in range(count):
            lead.append(taken + 1 - len(got))
            yield taken

    for result in prefetch(lambda item: 10 * item, items(), workers=workers):
        got.append(result)
    assert got == [10 * item for item in range(count)]
    assert max(lead) == min(workers + 1, count)


def test_an_item_that_is_done_early_waits_for_its_turn():
    second_is_done = threading.Event()

    def work(item):
        if item == 0:
            assert second_is_done.wait(DEADLINE)
        if item == 1:
            second_is_done.set()
        return item

    assert list(prefetch(work, range(4), workers=2)) == [0, 1, 2, 3]


@any_workers
def test_an_error_is_raised_at_the_turn_of_its_item(workers):
    def work(item):
        if item == 3:
            raise ValueError("item 3 is bad")
        return item

    before = set(threading.enumerate())
    got = []
    with pytest.raises(ValueError, match="item 3 is bad"):
        got.extend(prefetch(work, range(10), workers=workers))
    assert got == [0, 1, 2]
    assert set(threading.enumerate()) == before


@any_workers
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_an_abandoned_iterator_leaves_no_thread(workers, taken):
    before = set(threading.enumerate())
    results = prefetch(lambda item: item, range(100), workers=workers)
    assert [next(results) for _ in range(taken)] == list(range(taken))
    results.close()
    assert set(threading.enumerate()) == before


def ticking(*steps):
    """A clock that moves on by these steps, then by the last one."""
    times = iter([0.0, *steps])
    state = {"time": 0.0, "step": 0.0}

    def clock():
        state["step"] = next(times, state["step"])
        state["time"] += state["step"]
        return state["time"]

    return clock


@pytest.mark.parametrize(("steps", "threads"), [((1.0,), 2), ((0.1,) * 12 + (5.0,), 1)])
def test_threads_are_used_where_they_pay_off(steps, threads, monkeypatch):
    monkeypatch.setattr("twoscale.runtime.threads._TRIAL_SIZE", 8)
    with worthwhile_threads(ticking(*steps)):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


def test_the_last_block_restores_a_shared_setting():
    values = [5]
    setting = SharedSetting(lambda: values[-1], values.append, 1)
    first, second = setting.changed(), setting.changed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert values[-1] == 1
    second.__exit__(None, None, None)
    assert values[-1] == 5
