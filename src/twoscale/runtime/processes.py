"""Several processes that train one network: who they are, and what they tell each other.

They are the processes of torch's default process group. Without such a group there is one process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.runtime.memory import is_out_of_memory

Value = TypeVar("Value")

_LAUNCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # which torchrun sets
_HOURS = 2  # the first process may fit a PCA while the others wait for it
_TIMEOUT = timedelta(hours=_HOURS)
_PAUSE = 0.05  # seconds between two looks at whether the first process is ready


def count() -> int:
    """Return the number of processes that train together; 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if count() > 1 else 0


def is_first() -> bool:
    """Say whether this is the process that shows and writes results."""
    return rank() == 0


def local_rank() -> int:
    """Return the number of this process on its machine, from 0: the number of its GPU."""
    return _whole_number("LOCAL_RANK", rank())


def launched() -> int:
    """Return how many processes torchrun has started, by the environment; 1 without torchrun."""
    if not dist.is_available() or any(name not in os.environ for name in _LAUNCH):
        return 1
    return _whole_number("WORLD_SIZE", 1)


def refuse_several(
    subject: str, advice: str = "start it without torchrun", *, started: int | None = None
) -> None:
    """Raise if there is more than one process: `subject` runs in one only.

    `started` is the number of processes, by default of those that train together.
    """
    started = count() if started is None else started
    if started > 1:
        raise TwoscaleError(
            f"{subject} in one process, and {started} have been started to train together: {advice}"
        )


def add_up(values: Tensor) -> Tensor:
    """Return the sum of the processes' tensors, in place; all get the same bits."""
    if count() > 1:
        _together(lambda: dist.all_reduce(values))
    return values


def copy_from_first(values: Tensor) -> None:
    """Copy the first process's tensor into those of the others."""
    whole = values.detach().contiguous()
    _together(lambda: dist.broadcast(whole, 0))
    values.detach().copy_(whole)


def from_first(value: Value) -> Value:
    """Return the first process's value; it may be any object, with tensors on the CPU."""
    held = [value]
    _together(lambda: dist.broadcast_object_list(held, 0))
    return held[0]


def check_same(value: str) -> None:
    """Raise if processes have different values, which describe what each of them fits."""
    found: list[str] = [""] * count()
    _together(lambda: dist.all_gather_object(found, value))
    if len(set(found)) > 1:
        raise TwoscaleError(
            f"the {count()} processes that train together fit different things: give all of them "
            "the same data, parts and seed"
        )


def _together(work: Callable[[], object]) -> None:
    """Do what all processes do at once; say so if one of them has ended or does not answer."""
    try:
        work()
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        cause = ConnectionError(str(error))  # what is saved stays: nothing is wrong with the input
        raise TwoscaleError(
            f"one of the {count()} processes that train together has ended, or did not answer for "
            f"{_HOURS} hours, or they cannot reach each other"
        ) from cause


@contextmanager
def process_group() -> Iterator[None]:
    """Join the processes that torchrun started; the others wait for the first one at the end.

    An error in any of them ends all. It is raised in the process that fails first; in the others,
    whose errors follow from it, a SystemExit is.
    """
    store, number, size = next(dist.rendezvous("env://", timeout=_TIMEOUT))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if local_rank() < torch.cuda.device_count():
        torch.cuda.set_device(local_rank())
    dist.init_process_group(backend, store=store, rank=number, world_size=size, timeout=_TIMEOUT)
    notes = dist.PrefixStore("twoscale", store)
    try:
        yield
        _end_together(notes)
    except BaseException as error:
        if _is_first_error(notes):
            raise
        raise SystemExit(getattr(error, "status", 2)) from error
    dist.destroy_process_group()


def own_gpu() -> int:
    """Return the number of this process's GPU; raise if its machine has too few."""
    number, devices = local_rank(), torch.cuda.device_count()
    if number >= devices:
        raise TwoscaleError(
            f"process {number + 1} on this machine has no GPU of its own, because there are "
            f"{devices}: start one process per GPU, or use the device cpu"
        )
    return number


def _end_together(notes: dist.Store) -> None:
    """Tell the others that the first process is ready, or wait until it is or has failed."""
    if is_first():
        notes.set("ready", "")
        return
    while not notes.check(["ready"]):
        if notes.check(["errors"]):
            raise SystemExit(2)
        time.sleep(_PAUSE)


def _is_first_error(notes: dist.Store) -> bool:
    """Say whether no other process has failed before this one."""
    try:
        return notes.add("errors", 1) == 1
    except RuntimeError:  # the process that held the notes has ended
        return False


def _whole_number(name: str, usual: int) -> int:
    """Return a whole number from the environment."""
    text = os.environ.get(name, str(usual))
    if not (text.isascii() and text.isdecimal()):
        raise TwoscaleError(f"{name} is a whole number that torchrun sets, got '{text}'")
    return int(text)
