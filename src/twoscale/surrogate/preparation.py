"""Before a fit: pairs of fields as users hand them over, checked, held out, sent to the device."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.source import ArraySource, FieldSource, SentSource
from twoscale.operators.context import FieldPairs, FitContext
from twoscale.operators.operators import FieldOperator
from twoscale.surrogate.arguments import Fields, as_fields

_VALIDATION_SHARE = 0.1


@dataclass(frozen=True)
class Fitting:
    """A fit in progress: an operator, its data, and what accompanies it."""

    operator: FieldOperator
    training: FieldPairs
    validation: FieldPairs
    context: FitContext
    shape: tuple[int, int, int]

    def without_fields(self) -> Fitting:
        """Return the same without the data, which can be large."""
        none = FieldPairs(ArraySource(torch.empty(0, 0, 0)), ArraySource(torch.empty(0, 0, 0)))
        return replace(self, training=none, validation=none)


def both_pairs(
    inputs: Fields,
    outputs: Fields,
    validation: tuple[Fields, Fields] | None,
    *,
    device: torch.device,
    seed: int,
    resident: bool = True,
) -> tuple[FieldPairs, FieldPairs]:
    """Return training and validation pairs; without the latter, a tenth of a shuffle is held out.

    Fields are `resident` on the device, or moved there in chunks on each pass.
    """
    if validation is None:
        inputs, outputs, validation = _hold_out(inputs, outputs, seed)
    training = field_pairs(inputs, outputs, "training", device=device, resident=resident)
    return training, field_pairs(*validation, "validation", device=device, resident=resident)


def _hold_out(inputs: Fields, outputs: Fields, seed: int) -> tuple[Fields, Fields, tuple]:
    x, u = as_fields(inputs, "input"), as_fields(outputs, "output")
    if len(x) != len(u):
        raise TwoscaleError(f"there are {len(x)} input fields but {len(u)} output fields")
    if len(x) < 4:
        raise TwoscaleError(f"a surrogate needs at least 4 pairs of fields, got {len(x)}")
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(x)))
    held = max(1, round(_VALIDATION_SHARE * len(x)))
    rest, last = order[:-held].sort().values, order[-held:].sort().values
    return x[rest], u[rest], (x[last], u[last])


def field_pairs(
    inputs: Fields, outputs: Fields, role: str, *, device: torch.device, resident: bool = True
) -> FieldPairs:
    """Return the pairs of one role (training, validation, test), or say what is wrong with them."""
    devices = {given.device for given in (inputs, outputs) if isinstance(given, Tensor)}
    resident = resident or len(devices) > 1
    pairs = FieldPairs(
        _source(inputs, f"{role} input", device, resident),
        _source(outputs, f"{role} output", device, resident),
    )
    if pairs.inputs.shape != pairs.outputs.shape:
        raise TwoscaleError(
            f"{role} inputs have shape {pairs.inputs.shape}, outputs {pairs.outputs.shape}: "
            "they must agree"
        )
    return pairs


def _source(fields: Fields, name: str, device: torch.device, resident: bool) -> FieldSource:
    if isinstance(fields, np.ndarray | Tensor):
        fields = ArraySource(as_fields(fields, name))
    return fields.to(device) if resident else SentSource(fields, device)
