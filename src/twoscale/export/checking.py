"""Is an exported graph the surrogate? Both predict from the same inputs, in batches of any size."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.export.graph import FieldGraph, as_inputs
from twoscale.operators.operators import FieldOperator

Predict = Callable[[tuple[Tensor, ...]], Tensor]
"""Predicts from the inputs of a graph."""

LARGEST_DIFFERENCE = 1e-5
"""The largest difference to the surrogate's own prediction, relative to its norm."""
_BATCHES = (1, 3, 8)
_ROUNDING = 4.0  # times the surrogate's own rounding errors are explained by other sums


@torch.no_grad()
def sample_inputs(operator: FieldOperator, *, seed: int = 0) -> Tensor:
    """Return inputs like those of the training: decoded from random codes as wide as theirs."""
    inputs = operator.latent.inputs
    spread = inputs.code_spread.cpu()
    noise = torch.randn(max(_BATCHES), len(spread), generator=torch.Generator().manual_seed(seed))
    device = next(inputs.buffers()).device
    fields = inputs.decode((noise * spread).to(device)).cpu()
    if inputs.affine is not inputs:  # transforms are of positive values
        fields = fields.abs()
    return fields.float()


@torch.no_grad()
def check(graph: FieldGraph, predict: Predict, fields: Tensor, space: Space) -> float:
    """Return the largest relative difference of predictions to those of the graph's operator.

    Raise if it is more than 1e-5, and more than rounding in single precision explains.
    """
    worst = 0.0
    for batch in _BATCHES:
        inputs = as_inputs(fields[:batch], space)
        expected, found = graph(*inputs), predict(inputs)
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise TwoscaleError(
                f"the exported graph gives {found.dtype} {tuple(found.shape)} where the surrogate "
                f"gives {expected.dtype} {tuple(expected.shape)}: nothing was written"
            )
        worst = max(worst, difference(found, expected))
    if not worst <= max(LARGEST_DIFFERENCE, _ROUNDING * _rounding(graph, fields, space, worst)):
        raise TwoscaleError(
            f"the exported graph differs from the surrogate by {worst:.1e} of the prediction's "
            f"norm, more than {LARGEST_DIFFERENCE:.0e}: nothing was written"
        )
    return worst


def difference(found: Tensor, expected: Tensor) -> float:
    """Return ||found - expected|| / ||expected||; NaN unless both are finite."""
    size = float(expected.double().norm())
    return float((found.double() - expected.double()).norm()) / (size or 1.0)


def _rounding(graph: FieldGraph, fields: Tensor, space: Space, worst: float) -> float:
    """Return the difference between predictions in single and in double precision."""
    if worst <= LARGEST_DIFFERENCE:
        return 0.0
    inputs = as_inputs(fields, space)
    exact = copy.deepcopy(graph).double()(*(one.double() for one in inputs))
    return difference(graph(*inputs), exact)
