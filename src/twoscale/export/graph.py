"""A fitted operator as one graph: what it takes, what it gives, and how it is traced."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import ERROR, getLogger
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import Batch
from twoscale.operators.operators import FieldOperator

Predict = Callable[[tuple[Tensor, ...]], Tensor]
"""Predicts from the inputs of a graph."""

FIELDS, PARAMETERS, PREDICTION = "fields", "parameters", "prediction"
_EXAMPLES = 3  # samples that a graph is traced with; it takes any number


class FieldGraph(nn.Module):
    """An operator on fields (batch, channels, height, width), on parameters, or on both.

    Parameters are (batch, parameters).
    """

    def __init__(self, operator: FieldOperator, space: Space) -> None:
        super().__init__()
        self.operator = operator
        self.reads_fields = space.channels > 0

    def forward(self, *inputs: Tensor) -> Tensor:
        if self.reads_fields:
            return self.operator(*inputs)
        (scalars,) = inputs
        return self.operator(scalars.new_zeros(scalars.shape[0], 0, 1, 1), scalars)


def graph_of(operator: FieldOperator, space: Space) -> FieldGraph:
    """Return an operator on inputs of a space as a graph on the CPU."""
    on_cpu = all(one.device.type == "cpu" for one in (*operator.parameters(), *operator.buffers()))
    own = operator if on_cpu else copy.deepcopy(operator).cpu()
    return FieldGraph(own, space).eval()


def input_names(space: Space) -> list[str]:
    """Return the names of a graph's inputs, in their order."""
    return [FIELDS] * bool(space.channels) + [PARAMETERS] * bool(space.parameters)


def as_inputs(inputs: Batch, space: Space) -> tuple[Tensor, ...]:
    """Return a graph's inputs from a batch of a space."""
    parts = {FIELDS: inputs.fields, PARAMETERS: inputs.parameters}
    return tuple(parts[name].contiguous() for name in input_names(space))


@torch.no_grad()
def trace(graph: FieldGraph, given: Batch, space: Space) -> ExportedProgram:
    """Return the traced graph, which takes batches of any size.

    `given` are inputs of the space to trace with.
    """
    inputs = as_inputs(given[:_EXAMPLES], space)
    # Tables that are made at the first call are kept: made while tracing, they would be no tensors.
    graph(*inputs)
    shapes: Any = {"inputs": tuple({0: Dim("batch", min=1)} for _ in inputs)}
    try:
        with quiet_libraries():
            return export(graph, inputs, dynamic_shapes=shapes, strict=False)
    except Exception as error:
        raise TwoscaleError(
            f"this surrogate cannot be traced ({first_line(error)}): a part of your own must use "
            "torch operations only, and none that depend on the number of samples"
        ) from error


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep torch from logging and warning of what users cannot change."""
    logger = getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message that says something."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)
