import os
from unittest.mock import Mock

import pytest
import torch

from twoscale.errors import TwoscaleWarning
from twoscale.files import Checkpoints


@pytest.fixture
def clock():
    """A clock that tests set by its `time`."""
    made = Mock(side_effect=lambda: made.time)
    made.time = 0.0
    return made


@pytest.fixture
def checkpoints(tmp_path, clock):
    return Checkpoints(tmp_path / "kept", clock)


TENSORS = {
    "a": torch.arange(6.0).reshape(2, 3).T,
    "b": torch.tensor(3),
    "c": torch.ones(2).bfloat16(),
}


def test_what_is_saved_is_loaded(checkpoints, clock):
    one = checkpoints.named("training")
    clock.time = 7.0
    one.save(TENSORS, {"epoch": 3, "best": float("inf")})
    other = checkpoints.named("training")
    tensors, facts = other.load()
    assert facts == {"epoch": 3, "best": float("inf")}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in tensors)
    assert all(tensors[name].dtype == TENSORS[name].dtype for name in tensors)
    assert other.earlier == 7.0
    clock.time = 9.0
    assert other.seconds == 9.0


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_a_damaged_one_counts_as_none(checkpoints, damage):
    one = checkpoints.named("x")
    assert one.load() is None
    one.save(TENSORS, {})
    assert checkpoints.named("y").load() is None
    content = bytearray(one.path.read_bytes())
    if damage == "flip":
        content[-2] ^= 4
    one.path.write_bytes(
        {"flip": content, "cut": content[:-3], "empty": b"", "other": b"x" * 99}[damage]
    )
    assert one.load() is None


def test_it_is_due_after_two_seconds_and_then_after_a_twentieth(checkpoints, clock):
    one = checkpoints.named("x")
    clock.time = 1.9
    assert not one.due()
    assert not one.worthwhile()
    clock.time = 2.0
    assert one.due()
    assert one.worthwhile()
    clock.time = 200.0
    one.save(TENSORS, {})
    clock.time = 209.0
    assert not one.due()
    clock.time = 211.0
    assert one.due()


def test_slow_saving_is_done_less_often(checkpoints, clock, monkeypatch):
    one = checkpoints.named("x")

    def slow(*arguments, **options):
        clock.time += 1.0

    monkeypatch.setattr("twoscale.files.checkpoints.save_file", slow)
    monkeypatch.setattr("twoscale.files.checkpoints.replace_file", lambda *paths: None)
    one.save(TENSORS, {})
    clock.time = 40.0
    assert not one.due()
    clock.time = 41.0
    assert one.due()


def test_a_disk_that_is_full_ends_the_saving_only(checkpoints, clock, monkeypatch):
    one = checkpoints.named("x")

    def full(self, other):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.warns(TwoscaleWarning, match="No space left"):
        one.save(TENSORS, {})
    assert list(checkpoints.folder.iterdir()) == []
    clock.time = 1000.0
    assert not one.due()
