"""Predictions of fields: batch by batch, from recordings, or with gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from twoscale.errors import TwoscaleError
from twoscale.fields.samples import as_parameters, four_axes
from twoscale.fields.source import slices
from twoscale.runtime.progress import Progress
from twoscale.runtime.replay import replayed

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
    for part in slices(len(fields), length):
        made.append(predict(fields[part].to(device)).to(fields.device))
        if progress:
            progress("fields", part.stop, len(fields), "")
    return torch.cat(made)


def matching_parts(
    inputs: np.ndarray | None, parameters: np.ndarray | None, length: int
) -> Iterator[tuple[slice, Any, Any]]:
    """Yield inputs and parameters `length` samples at a time, with the samples they are of."""
    if inputs is not None and (not 2 <= inputs.ndim <= 4 or not len(inputs)):
        four_axes(np.asarray(inputs), "input")  # raises
    scalars = None if parameters is None else as_parameters(parameters).numpy()
    counts = [len(one) for one in (inputs, scalars) if one is not None]
    if len(set(counts)) > 1:
        raise TwoscaleError(
            f"there are {counts[0]} input fields but parameters of {counts[1]} samples"
        )
    for part in slices(max(counts, default=1), length):
        fields, some = (None if one is None else one[part] for one in (inputs, scalars))
        yield part, fields, some
