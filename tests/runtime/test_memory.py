"""Sizes as people write them, free and used memory, and fits that stay on disk."""

import pytest
import torch

from twoscale import TwoscaleError
from twoscale.runtime import memory
from twoscale.runtime.memory import (
    available_memory,
    free_memory,
    parse_size,
    peak_memory,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [("800MB", 800 * 10**6), ("1.5 GB", 1.5e9), ("2g", 2e9), ("64k", 64000), ("123", 123)],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1.2.3GB", "2 XB", "0"])
def test_sizes_that_are_none(text):
    with pytest.raises(TwoscaleError, match="800MB"):
        parse_size(text)


SIZES = {0: "0 B", 7: "7 B", 999: "999 B", 1000: "1 kB", 327_680: "328 kB", 999_999: "1 MB"}
SIZES |= {1.5e9: "1.5 GB", 34_560_000_001: "34.6 GB", 2.5e15: "2500 TB"}


@pytest.mark.parametrize(("size", "text"), SIZES.items())
def test_sizes_are_told_in_a_unit_that_fits(size, text):
    assert size_text(size) == text
    assert not size or size <= parse_size(text) <= 1.01 * size


def test_the_machine_tells_its_memory():
    assert 10**7 < peak_memory() < 10**12
    assert 10**6 < available_memory() < 10**14


@pytest.mark.gpu
def test_a_gpu_tells_its_own():
    device = torch.device("cuda")
    before = free_memory(device)
    held = torch.empty(2**26, device=device)
    assert before - free_memory(device) >= 0.9 * held.nbytes


def test_without_linux_tables_the_machine_tells_about_the_same(monkeypatch):
    monkeypatch.setattr(memory, "_group_limit", lambda: None)
    free, peak = available_memory(), peak_memory()
    monkeypatch.setattr(memory, "_kernel", lambda path, name: None)
    assert available_memory() == pytest.approx(free, rel=0.2)
    assert peak_memory() == pytest.approx(peak, rel=0.2)


def test_a_containers_limit_counts(monkeypatch):
    monkeypatch.setattr(memory, "_group_limit", lambda: 12345)
    assert available_memory() == free_memory(torch.device("cpu")) == 12345


def test_freed_memory_is_given_back_now_and_then(monkeypatch):
    calls = []
    monkeypatch.setattr(memory, "_release_call", lambda: calls.append)
    monkeypatch.setattr(memory._Released, "latest", 0.0)
    for _ in range(3):
        memory.release_memory()
    assert calls == [0]
    monkeypatch.setattr(memory, "_release_call", lambda: None)  # as on other systems
    monkeypatch.setattr(memory._Released, "latest", 0.0)
    memory.release_memory()
