import errno
import os
import shutil
from collections import namedtuple

import pytest
import torch

from twoscale import TwoscaleError
from twoscale.runtime import scratch as module
from twoscale.runtime.scratch import IN_MEMORY, Scratch

ONE = torch.ones(1)


def is_file(tensor):
    return tensor.untyped_storage().filename is not None


@pytest.fixture
def scratch(tmp_path):
    """In memory are 256 floats at most."""
    return Scratch(tmp_path / "scratch", memory=16 * 1024)


def test_large_tensors_are_files_and_small_ones_are_not(scratch):
    small, large = scratch.empty(16, 16, like=ONE), scratch.empty(16, 17, like=ONE)
    assert not is_file(small)
    assert is_file(large)
    assert (large.shape, large.dtype) == ((16, 17), torch.float32)
    large.copy_(torch.arange(272.0).view(16, 17))
    assert torch.equal(large.sum(1), torch.arange(272.0).view(16, 17).sum(1))
    assert scratch.empty(200, like=ONE.double()).dtype == torch.float64


def test_files_have_no_names_and_outlive_the_folder(scratch):
    tensor = scratch.empty(1000, like=ONE).fill_(2)
    assert list(scratch.folder.iterdir()) == []
    scratch.close()
    assert not scratch.folder.exists()
    assert tensor.sum() == 2000


def test_all_is_in_memory_by_default():
    assert not IN_MEMORY.on_disk
    assert not is_file(IN_MEMORY.empty(100_000, like=ONE))
    assert IN_MEMORY.rows(10**9, 10**6) == 10**9


def test_only_what_is_on_disk_is_computed_with_in_parts(scratch, monkeypatch):
    monkeypatch.setattr(module, "_PART_VALUES", 100)
    assert scratch.rows(25, 10) == 25
    assert scratch.rows(26, 10) == 10
    assert scratch.rows(10, 1000) == 1


def test_a_disk_that_is_too_small_is_told(scratch, monkeypatch):
    free = namedtuple("usage", "free")(5000)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: free)
    scratch.require([900, 4900])  # the first would be in memory
    with pytest.raises(TwoscaleError, match=r"8 kB of disk .* 5 kB are free") as told:
        scratch.require([4000, 4000])
    assert isinstance(told.value.__cause__, OSError), "checkpoints are worth keeping"


@pytest.fixture
def reservation(monkeypatch):
    """Return a function that lets the system answer a file's reservation with an error."""

    def answers(number):
        def refuse(*arguments):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("os.posix_fallocate", refuse)

    return answers


@pytest.mark.parametrize("number", [0, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_files_of_zeros_need_no_reservation(scratch, reservation, number):
    if number:
        reservation(number)
    assert not scratch.zeros(10, like=ONE).any()
    tensor = scratch.zeros(1000, like=ONE)
    assert is_file(tensor)
    assert not tensor.any()
    assert tensor.fill_(2).sum() == 2000


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (errno.ENOSPC, TwoscaleError, "make room"),
        (errno.EDQUOT, TwoscaleError, "make room"),
        (errno.EIO, OSError, os.strerror(errno.EIO)),
    ],
)
def test_a_disk_that_fills_up_is_told_before_anything_is_written(
    scratch, reservation, number, error, words
):
    reservation(number)
    with pytest.raises(error, match=words):
        scratch.empty(1000, like=ONE)
    assert list(scratch.folder.iterdir()) == []
