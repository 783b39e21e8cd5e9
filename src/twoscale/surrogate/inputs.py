"""The door for arrays: fields and parameters, checked, paired, held out, sent to the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid, Space
from twoscale.fields.samples import (
    Fields,
    Samples,
    as_parameters,
    as_samples,
    four_axes,
    with_parameters,
)
from twoscale.operators.context import FieldPairs

_VALIDATION_SHARE = 0.1


@dataclass(frozen=True)
class Pair:
    """Inputs and outputs of the same samples, as users gave them."""

    inputs: Samples
    outputs: Samples

    def fields(self, device: torch.device, *, resident: bool = True) -> FieldPairs:
        """Return both on a device, or sent there in chunks on each pass."""
        inputs = self.inputs.to(device, resident=resident)
        outputs = self.outputs.to(device, resident=resident)
        return FieldPairs(inputs.source, outputs.source, (inputs.space, outputs.space))

    def on(self, device: torch.device) -> Pair:
        """Return the same pairs on a device."""
        return Pair(self.inputs.to(device), self.outputs.to(device))

    @property
    def ranks(self) -> tuple[int, int]:
        return (self.inputs.rank, self.outputs.rank)


@dataclass(frozen=True)
class Door:
    """How fields come in: which axes wrap, and what the channels are called."""

    periodic: tuple[bool, bool] = (False, False)
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    fitted: bool = False  # the names are those of fields that these are to be compared with

    def _samples(self, fields: Fields, name: str, names: Sequence[str] | None) -> Samples:
        own = None if self.fitted else names
        samples = as_samples(fields, name, periodic=self.periodic, names=own)
        if not self.fitted or names is None or isinstance(fields, Samples):
            return samples
        if len(names) != samples.space.channels:
            return samples  # told as what it is, by `check_alike`
        return replace(samples, space=replace(samples.space, names=tuple(names)))

    def inputs(self, fields: Fields | None, parameters: Any, name: str) -> Samples:
        """Return the inputs of one role: fields, parameters, or both."""
        if fields is None and parameters is None:
            raise TwoscaleError(f"there are neither {name} fields nor parameters: give one of them")
        samples = None
        if fields is not None:
            samples = self._samples(fields, name, self.input_names)
        if parameters is None:
            assert samples is not None
            return samples
        return with_parameters(samples, as_parameters(parameters))

    def pair(self, inputs: Fields | None, outputs: Fields, parameters: Any, role: str) -> Pair:
        """Return the pairs of one role (training, validation, test), or say what is wrong."""
        seen = self.inputs(inputs, parameters, f"{role} input")
        made = self._samples(outputs, f"{role} output", self.output_names)
        if len(seen) != len(made):
            raise TwoscaleError(
                f"there are {len(seen)} {role} inputs but {len(made)} outputs: they must be pairs"
            )
        return Pair(seen, made)

    def both(
        self,
        inputs: Fields | None,
        outputs: Fields,
        parameters: Any,
        validation: tuple[Any, ...] | None,
        seed: int,
    ) -> tuple[Pair, Pair]:
        """Return training and validation pairs; without the latter, a tenth is held out."""
        if validation is None:
            kept, validation = hold_out((inputs, outputs, parameters), seed)
            inputs, outputs, parameters = kept
        if len(validation) not in (2, 3):
            raise TwoscaleError(
                "validation is a pair (inputs, outputs), or with parameters a triple, got "
                f"{len(validation)} things"
            )
        x, u, *rest = validation
        training = self.pair(inputs, outputs, parameters, "training")
        held_out = self.pair(x, u, rest[0] if rest else None, "validation")
        for name, one, other in (
            ("inputs", training.inputs.space, held_out.inputs.space),
            ("outputs", training.outputs.space, held_out.outputs.space),
        ):
            if one.shape != other.shape or one.parameters != other.parameters:
                raise TwoscaleError(
                    f"training {name} are {one.contents}, validation {name} {other.contents}: they "
                    "must agree"
                )
        return training, held_out


def check_alike(name: str, fitted: Space, given: Space) -> None:
    """Raise if fields differ from those of a fitted space: contents, periodic axes or names."""
    if given.shape != fitted.shape or given.parameters != fitted.parameters:
        raise TwoscaleError(
            f"this surrogate was fitted on {name}s of {fitted.contents}, these are {given.contents}"
        )
    if given.grid.periodic != fitted.grid.periodic:
        raise TwoscaleError(
            f"this surrogate was fitted on {name} fields of {fitted.grid} (p: periodic), these "
            f"are {given.grid}"
        )
    if fitted.names is not None and given.names is not None and fitted.names != given.names:
        raise TwoscaleError(
            f"this surrogate was fitted on the {name} channels {', '.join(fitted.names)}, these "
            f"are {', '.join(given.names)}: bring them into that order"
        )


def check_shape(name: str, space: Space, shape: Sequence[int]) -> None:
    """Raise if fields of (channels, height, width) are not those of a fitted space."""
    if tuple(shape) != space.shape:
        channels, height, width = shape
        came = Space(channels, Grid(height, width), min(space.parameters, channels))
        raise TwoscaleError(
            f"this surrogate was fitted on {name}s of {space.contents}, these are {came.contents}"
        )


def input_batch(inputs: Any, parameters: Any, space: Space) -> Tensor:
    """Return inputs of a fitted space as a field batch, parameters as its last channels.

    Shapes are checked, values are not.
    """
    scalars = None if parameters is None else as_parameters(parameters)
    given = 0 if scalars is None else scalars.shape[1]
    if given != space.parameters:
        wanted = f"{space.parameters} parameters" if space.parameters else "no parameters"
        raise TwoscaleError(
            f"this surrogate was fitted with {wanted} for each sample, got {given or 'none'}"
        )
    if inputs is not None:
        fields = four_axes(inputs, "input")
        fields = fields if scalars is None else _with_channels(fields, scalars)
    elif scalars is not None:
        fields = scalars[:, :, None, None]
    else:
        raise TwoscaleError("there is nothing to predict from: give input fields")
    check_shape("input", space, fields.shape[1:])
    return fields


def _with_channels(fields: Tensor, scalars: Tensor) -> Tensor:
    """Return fields (b, C, H, W) with scalars (b, P) as P further channels."""
    if len(scalars) != len(fields):
        raise TwoscaleError(
            f"there are {len(fields)} input fields but parameters of {len(scalars)} samples"
        )
    expanded = scalars.to(fields.device)[:, :, None, None]
    return torch.cat([fields, expanded.expand(-1, -1, *fields.shape[2:])], 1)


def hold_out(data: tuple[Any, Any, Any], seed: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return inputs, outputs and parameters for training, and the same for validation.

    The latter is a tenth of a shuffle.
    """
    arrays = [None if one is None else _array(one) for one in data]
    counts = {len(one) for one in arrays if one is not None}
    if len(counts) > 1:
        x, u, p = (None if one is None else len(one) for one in arrays)
        raise TwoscaleError(
            f"there are {x if x is not None else p} inputs but {u} outputs: they must be pairs"
            if p is None or x is None or x == p
            else f"there are {x} input fields but parameters of {p} samples"
        )
    (count,) = counts
    if count < 4:
        raise TwoscaleError(f"a surrogate needs at least 4 pairs of fields, got {count}")
    order = torch.from_numpy(np.random.default_rng(seed).permutation(count))
    held = max(1, round(_VALIDATION_SHARE * count))
    parts = order[:-held].sort().values, order[-held:].sort().values
    training, validation = (
        tuple(None if one is None else one[_rows(one, part)] for one in arrays) for part in parts
    )
    return training, validation


def _array(fields: Any) -> np.ndarray | Tensor:
    if isinstance(fields, np.ndarray | Tensor):
        if not fields.ndim:
            raise TwoscaleError("fields and parameters have an axis of samples, got one number")
        return fields
    if isinstance(fields, list | tuple):
        raise TwoscaleError("fields and parameters are NumPy or torch arrays, got a list")
    raise TwoscaleError(
        f"only arrays are split into training and validation fields, got {type(fields).__name__}: "
        "pass validation=(inputs, outputs)"
    )


def _rows(array: Any, rows: Tensor) -> Any:
    return rows.to(array.device) if isinstance(array, Tensor) else rows.numpy()
