"""Predictions of fields: batch by batch, from recordings, or with gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.samples import as_parameters, read_shape
from twoscale.fields.source import slices
from twoscale.runtime.cuda_graphs import replayed
from twoscale.runtime.progress import Progress

Predict = Callable[[Tensor], Tensor]


def asks_for_gradient(fields: Tensor) -> bool:
    """Say whether a prediction from these fields is to be differentiable with respect to them."""
    return fields.requires_grad and torch.is_grad_enabled()


def prediction_of(operator: nn.Module, fields: Tensor) -> Predict:
    """Return how an operator predicts from such fields: replayed, or with a gradient.

    The gradient is that of the fields; the operator's own weights take none.
    """
    if not asks_for_gradient(fields):
        return partial(replayed, operator)
    weights = {name: weight.detach() for name, weight in operator.named_parameters()}
    return lambda batch: functional_call(operator, weights, (batch,))


def in_batches(
    predict: Predict,
    fields: Tensor,
    length: int,
    device: torch.device,
    progress: Progress | None = None,
) -> Tensor:
    """Return the predictions of checked fields, on their own device, `length` at a time."""
    if len(fields) <= length and progress is None:
        return predict(fields.to(device)).to(fields.device)
    made = []
    room: Tensor | None = None
    for part in slices(len(fields), length):
        one = predict(fields[part].to(device))
        if one.requires_grad:
            made.append(one.to(fields.device))
        else:
            # One result that parts are copied into: a list would be copied once more at the end.
            if room is None:
                room = one.new_empty((len(fields), *one.shape[1:]), device=fields.device)
            room[part] = one
        if progress:
            progress("fields", part.stop, len(fields), "")
    return torch.cat(made) if room is None else room


def matching_parts(
    inputs: Any, parameters: Any, length: int, space: Space, *, any_grid: bool = False
) -> Iterator[tuple[slice, Any, Any]]:
    """Yield inputs and parameters `length` samples at a time, with the samples they are of.

    Inputs are read as fields of a fitted space; `any_grid` is as for `read_shape`.
    """
    sides: list[int] = []
    if inputs is not None:
        (_, *sides), _ = read_shape(np.shape(inputs), "input", space, any_grid=any_grid)
    scalars = None if parameters is None else as_parameters(parameters).numpy()
    counts = [len(one) for one in (inputs, scalars) if one is not None]
    if len(set(counts)) > 1:
        raise TwoscaleError(
            f"there are {counts[0]} input fields but parameters of {counts[1]} samples"
        )
    for part in slices(max(counts, default=1), length):
        fields = None if inputs is None else np.asarray(inputs[part]).reshape(-1, *sides)
        yield part, fields, None if scalars is None else scalars[part]
