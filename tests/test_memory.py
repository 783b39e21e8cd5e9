"""Sizes as people write them, free and used memory, and fits that stay on disk."""

import pytest

from twoscale import TwoscaleError, memory
from twoscale.memory import available_memory, parse_size, peak_memory


@pytest.mark.parametrize(
    ("text", "size"),
    [("800MB", 800 * 10**6), ("1.5 GB", 1.5e9), ("2g", 2e9), ("64k", 64000), ("123", 123)],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1.2.3GB", "2 XB", "0"])
def test_sizes_that_are_none(text):
    with pytest.raises(TwoscaleError, match="a size of memory is given like 800MB"):
        parse_size(text)


def test_the_machine_tells_its_memory():
    assert 10**7 < peak_memory() < 10**12
    assert 10**6 < available_memory() < 10**14


def test_a_machine_that_tells_nothing(monkeypatch):
    monkeypatch.setattr(memory, "_kernel", lambda path, name: None)
    monkeypatch.setattr(memory, "_group_limit", lambda: None)
    assert available_memory() == 8 * 10**9
    assert peak_memory() > 10**7


def test_a_containers_limit_counts(monkeypatch):
    monkeypatch.setattr(memory, "_group_limit", lambda: 12345)
    assert available_memory() == 12345
