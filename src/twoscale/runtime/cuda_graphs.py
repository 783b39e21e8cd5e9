"""CUDA graphs: work recorded once and replayed, without Python or launches in between.

For a small batch Python takes longer to launch the kernels of a prediction than the GPU takes to
run them. The second prediction of a shape is recorded, and later ones replay it. Recordings are
kept apart from the operator: they are neither saved nor copied with it, and end when it does.

All recording happens on one side stream, from which a few others branch off. Libraries keep work
space for every stream they meet, so a stream of one's own for each recording would leak memory; for
the same reason recorded work shares its work space, and two graphs must not run at the same time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from twoscale.runtime.precision import precision_flags

Result = TypeVar("Result")

_BRANCHES = 4
_LARGEST = 256 * 256**2  # nodes of a batch: what `predict` takes at a time; a guess, not measured
_KEPT = 4  # shapes per operator

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


# Predictions


def replayed(operator: nn.Module, *inputs: Tensor) -> Tensor:
    """Return operator(*inputs) without gradients, on CUDA from a recording where there is one.

    Every tensor that the operator reads must be its parameter or buffer, or keep its memory for
    good. Threads wait for each other.
    """
    if torch.is_grad_enabled():
        with torch.no_grad():
            return replayed(operator, *inputs)
    fields = inputs[0]
    if not fields.is_cuda or _cannot_record():
        return operator(*inputs)
    with exclusive_stream(fields.device):
        if fields.numel() > _LARGEST:
            return operator(*inputs)
        if operator not in _RECORDINGS:
            _RECORDINGS[operator] = Recordings()
        recording = _RECORDINGS[operator].find(operator, inputs)
        return operator(*inputs) if recording is None else recording(*inputs)


def _cannot_record() -> bool:
    """Say whether the caller uses autocast or records a graph itself."""
    return torch.is_autocast_enabled("cuda") or torch.cuda.is_current_stream_capturing()


class Recordings:
    """The recorded predictions of one operator, by shape; the four used last are kept."""

    def __init__(self) -> None:
        self.known: OrderedDict[Any, Recording | None] = OrderedDict()  # None: seen once
        self.weights: _Weights | None = None

    def find(self, operator: nn.Module, inputs: Sequence[Tensor]) -> Recording | None:
        """Return the recording for these shapes; made at the second call, None at the first."""
        if self.weights is None or self.weights.moved():
            self.known.clear()
            self.weights = _Weights(operator)
        key = (*((one.shape, one.dtype, one.device) for one in inputs), precision_flags())
        if key not in self.known:
            self.known[key] = None
            if len(self.known) > _KEPT:
                self.known.popitem(last=False)
            return None
        self.known.move_to_end(key)
        found = self.known[key]
        if found is None:
            graphs = [one.graph for one in self.known.values() if one is not None]
            # Only one of them runs at a time: they may work in the same memory.
            found = Recording(operator, inputs, graphs[0].pool() if graphs else None)
            self.known[key] = found
        return found


_RECORDINGS: WeakKeyDictionary[nn.Module, Recordings] = WeakKeyDictionary()


class Recording:
    """One prediction as a CUDA graph, from fixed inputs to a fixed output."""

    def __init__(self, operator: nn.Module, given: Sequence[Tensor], pool: Any) -> None:
        device = given[0].device

        def predict() -> tuple[list[Tensor], Tensor]:
            # Made here, the inputs lie in the graph's own memory, as all else it works on.
            layout = torch.contiguous_format
            inputs = [torch.empty_like(one, memory_format=layout) for one in given]
            return inputs, operator(*inputs)

        # Tensors made in inference mode could not be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            warm_up(lambda: operator(*given), device)
            self.graph, (self.inputs, self.outputs) = record(
                predict, device, pool=pool, capture_error_mode="thread_local"
            )

    def __call__(self, *inputs: Tensor) -> Tensor:
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)
        self.graph.replay()
        return self.outputs.clone()


class _Weights:
    """The memory of an operator's parameters and buffers, where recorded graphs read them."""

    def __init__(self, operator: nn.Module) -> None:
        owners: list[dict[str, Any]] = []
        for module in operator.modules():
            owners += [module._parameters, module._buffers, module._modules]
        self.parts = [(owner, name, part) for owner in owners for name, part in owner.items()]
        tensors = [*operator.parameters(), *operator.buffers()]
        self.memory = [(tensor, tensor.data_ptr()) for tensor in tensors]

    def moved(self) -> bool:
        """Say whether any tensor was replaced or has other memory; new values do not matter."""
        return any(owner.get(name) is not part for owner, name, part in self.parts) or any(
            tensor.data_ptr() != address for tensor, address in self.memory
        )
