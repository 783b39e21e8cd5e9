"""CUDA graphs: work recorded once and replayed, without Python or launches in between.

All recording happens on one side stream, from which a few others branch off. Libraries keep work
space for every stream they meet, so a stream of one's own for each recording would leak memory; for
the same reason recorded work shares its work space, and two graphs must not run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")

_BRANCHES = 4

_LOCK = RLock()
_LATEST: dict[torch.device, torch.cuda.Stream] = {}


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


@cache
def _branches(device: torch.device) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(_BRANCHES)]


@contextmanager
def exclusive_stream(device: torch.device) -> Iterator[None]:
    """Let only this thread record and replay inside the block, after all earlier such work.

    Work on one stream runs in order. If the latest block was on another stream, the current stream
    waits for it.
    """
    with _LOCK:
        stream, latest = torch.cuda.current_stream(device), _LATEST.get(device)
        if latest is not None and latest != stream:
            stream.wait_stream(latest)
        _LATEST[device] = stream
        yield


def warm_up(work: Callable[[], Any], device: torch.device, *, times: int = 1) -> None:
    """Run work on the side stream, which must come before recording it: libraries set up there."""
    with torch.cuda.device(device), exclusive_stream(device):
        stream, current = _side_stream(device), torch.cuda.current_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for _ in range(times):
                work()
        current.wait_stream(stream)


def record(
    work: Callable[[], Result], device: torch.device, **options: Any
) -> tuple[torch.cuda.CUDAGraph, Result]:
    """Record work without running it; return its graph and its result tensors.

    Options are those of `torch.cuda.graph`. Tensors that the graph reads and writes must keep their
    memory.
    """
    graph = torch.cuda.CUDAGraph()
    with (
        _LOCK,
        torch.cuda.device(device),
        torch.cuda.graph(graph, stream=_side_stream(device), **options),
    ):
        result = work()
    return graph, result


def side_by_side(works: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """Return the results of independent works; on CUDA, four of them run at a time.

    For many small kernels, each of which would leave most of the device idle.
    """
    if device.type != "cuda":
        return [work() for work in works]
    results = []
    recording = torch.cuda.is_current_stream_capturing()
    with torch.cuda.device(device), _LOCK if recording else exclusive_stream(device):
        current, branches = torch.cuda.current_stream(), _branches(device)
        for branch in branches:
            branch.wait_stream(current)
        for number, work in enumerate(works):
            with torch.cuda.stream(branches[number % _BRANCHES]):
                results.append(work())
        for branch in branches:
            current.wait_stream(branch)
    return results
