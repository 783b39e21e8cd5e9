"""The memory of requests: bounded together, never refused alone."""

import pytest

from twoscale.serve.limits import Limits, Refusal
from twoscale.serve.pending import Pending, decoded_size


def test_a_request_is_refused_for_others_and_not_for_itself():
    pending = Pending(Limits(request_bytes=100, pending_bytes=150))
    with pending.hold() as first, pending.hold() as second:
        first.add(200)
        with pytest.raises(Refusal, match="requests of 200 B are waiting") as refusal:
            second.add(1)
        assert refusal.value.status == 503
        first.release()
        second.add(120)
        first.add(30)
        assert pending.total == 150
    assert pending.total == 0


def test_one_request_has_a_most_size():
    pending = Pending(Limits(request_bytes=100))
    with pending.hold() as held:
        held.add_expanded(800)
        with pytest.raises(Refusal, match="have 800 B at most") as refusal:
            held.add_expanded(801)
    assert refusal.value.status == 413


def test_the_bound_admits_the_largest_request():
    assert Limits(request_bytes=10**9).pending_bytes == 10**9
    assert Limits(request_bytes=10, pending_bytes=20).pending_bytes == 20


def test_lists_take_more_memory_than_their_text():
    assert decoded_size(b"[[0.1,0.2],[0.3,0.4]]") == 3 * 32 + 3 * 64
