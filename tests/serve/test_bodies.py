"""The memory of requests: bounded together, never refused alone; arrays as JSON in pieces."""

import json

import numpy as np
import pytest

from twoscale.serve.bodies import PendingMemory, RequestMemory, json_pieces
from twoscale.serve.limits import Limits, Refusal


def test_a_request_is_refused_for_others_and_not_for_itself():
    pending = PendingMemory(Limits(request_bytes=100, pending_bytes=150))
    first, second = RequestMemory(pending), RequestMemory(pending)
    first.add(200)
    with pytest.raises(Refusal, match="200 B") as refusal:
        second.add(1)
    assert refusal.value.status == 503
    first.release()
    second.add(120)
    first.add(30)
    assert pending.total == 150


def test_one_request_has_a_most_size():
    memory = RequestMemory(PendingMemory(Limits(request_bytes=100)))
    memory.add_expanded(800)
    with pytest.raises(Refusal, match="800 B") as refusal:
        memory.add_expanded(801)
    assert refusal.value.status == 413


def test_lists_take_more_memory_than_their_text():
    memory = RequestMemory(PendingMemory(Limits()))
    memory.add_decoded(b"[[0.1,0.2],[0.3,0.4]]")
    assert memory.total == 3 * 32 + 3 * 64


def test_limits_are_positive_and_admit_the_largest_request():
    assert Limits(request_bytes=10**9).pending_bytes == 10**9
    assert Limits(request_bytes=10, pending_bytes=20).pending_bytes == 20
    with pytest.raises(ValueError, match="limit seconds"):
        Limits(seconds=0)


@pytest.mark.parametrize("shape", [(3,), (50_000,), (40, 30, 20), (3, 200, 200), (2, 1, 9000)])
def test_json_in_pieces_is_the_same_json(shape):
    numbers = np.random.default_rng(0).standard_normal(shape)
    assert json.loads(b"".join(json_pieces(numbers))) == numbers.tolist()
