"""Predictions of small batches on CUDA, recorded as graphs and replayed.

For a small batch Python takes longer to launch the kernels than the GPU takes to run them. The
second prediction of a shape is recorded as a CUDA graph, and later ones replay it. Recordings are
kept apart from the operator: they are neither saved nor copied with it, and end when it does.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from twoscale.runtime.cuda_graphs import exclusive_stream, record, warm_up
from twoscale.runtime.precision import precision_flags

_LARGEST = 256 * 256**2  # nodes of a batch: what `predict` takes at a time; a guess, not measured
_KEPT = 4  # shapes per operator


def replayed(operator: nn.Module, fields: Tensor) -> Tensor:
    """Return operator(fields) without gradients, on CUDA from a recording where there is one.

    Every tensor that the operator reads must be its parameter or buffer, or keep its memory for
    good. Threads wait for each other.
    """
    if torch.is_grad_enabled():
        with torch.no_grad():
            return replayed(operator, fields)
    if not fields.is_cuda or _cannot_record():
        return operator(fields)
    with exclusive_stream(fields.device):
        if fields.numel() > _LARGEST:
            return operator(fields)
        if operator not in _RECORDINGS:
            _RECORDINGS[operator] = Recordings()
        recording = _RECORDINGS[operator].find(operator, fields)
        return operator(fields) if recording is None else recording(fields)


def _cannot_record() -> bool:
    """Say whether the caller uses autocast or records a graph itself."""
    return torch.is_autocast_enabled("cuda") or torch.cuda.is_current_stream_capturing()


class Recordings:
    """The recorded predictions of one operator, by shape; the four used last are kept."""

    def __init__(self) -> None:
        self.known: OrderedDict[Any, Recording | None] = OrderedDict()  # None: seen once
        self.weights: _Weights | None = None

    def find(self, operator: nn.Module, fields: Tensor) -> Recording | None:
        """Return the recording for this shape; made at the second call, None at the first."""
        if self.weights is None or self.weights.moved():
            self.known.clear()
            self.weights = _Weights(operator)
        key = (fields.shape, fields.dtype, fields.device, precision_flags())
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
            found = Recording(operator, fields, graphs[0].pool() if graphs else None)
            self.known[key] = found
        return found


_RECORDINGS: WeakKeyDictionary[nn.Module, Recordings] = WeakKeyDictionary()


class Recording:
    """One prediction as a CUDA graph, from a fixed input to a fixed output."""

    def __init__(self, operator: nn.Module, fields: Tensor, pool: Any) -> None:
        def predict() -> tuple[Tensor, Tensor]:
            # Made here, the input lies in the graph's own memory, as all else it works on.
            inputs = torch.empty_like(fields, memory_format=torch.contiguous_format)
            return inputs, operator(inputs)

        # Tensors made in inference mode could not be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            warm_up(lambda: operator(fields), fields.device)
            self.graph, (self.inputs, self.outputs) = record(
                predict, fields.device, pool=pool, capture_error_mode="thread_local"
            )

    def __call__(self, fields: Tensor) -> Tensor:
        self.inputs.copy_(fields)
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
