"""The door for arrays: fields and parameters, checked, paired, held out, sent to the device."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.fields.arrays import is_labelled
from twoscale.fields.samples import (
    Fields,
    Samples,
    as_parameters,
    as_samples,
    four_axes,
    read_shape,
    rows_or_channels,
    users_rank,
    usual_array,
    with_parameters,
)
from twoscale.fields.source import is_source, with_channels
from twoscale.operators.context import FieldPairs
from twoscale.surrogate.labels import labelled_like
from twoscale.surrogate.resampling import Resampling, on_grid
from twoscale.trust import set_apart

Validation = tuple[Any, ...] | float | None
"""Validation data: (inputs, outputs), with parameters a triple, or a share of the samples."""

Calibration = tuple[Any, ...] | bool | None
"""Calibration data: (inputs, outputs), with parameters a triple; or whether to set some apart."""

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
    """How fields come in: which axes wrap, what the channels are called, or what they are like."""

    periodic: tuple[bool, bool] = (False, False)
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    like: tuple[Space, Space] | None = None  # spaces of inputs and outputs that are known already
    any_grid: bool = False  # the grids need not be those of the known spaces

    def _samples(self, fields: Fields, name: str, side: int) -> Samples:
        """Return the inputs (side 0) or outputs (side 1) of one role."""
        names = (self.input_names, self.output_names)[side]
        if isinstance(fields, Samples):
            return fields
        if self.like is None:
            samples = as_samples(fields, name, periodic=self.periodic, names=names)
            self._point_out_few_rows(samples, name)
            return samples
        known = self.like[side]
        samples = as_samples(
            fields, name, periodic=known.grid.plane.periodic, like=known, any_grid=self.any_grid
        )
        names = None if known.names is None else known.names[: known.field_channels]
        if names is None or len(names) != samples.space.channels:
            return samples  # another number of channels is told as what it is, by `check_alike`
        return replace(samples, space=replace(samples.space, names=names))

    @staticmethod
    def _point_out_few_rows(samples: Samples, name: str) -> None:
        if samples.rank != 3:
            return
        hint = rows_or_channels((len(samples), *samples.space.grid.shape), name)
        if hint is not None:
            warnings.warn(hint, TwoscaleWarning, stacklevel=2)

    def inputs(self, fields: Fields | None, parameters: Any, name: str) -> Samples:
        """Return the inputs of one role: fields, parameters, or both."""
        if fields is None and parameters is None:
            raise TwoscaleError(f"there are neither {name} fields nor parameters: give one of them")
        samples = None
        if fields is not None:
            samples = self._samples(fields, name, 0)
        if parameters is None:
            assert samples is not None
            return samples
        return with_parameters(samples, as_parameters(parameters))

    def pair(self, inputs: Fields | None, outputs: Fields, parameters: Any, role: str) -> Pair:
        """Return the pairs of one role (training, validation, test), or say what is wrong."""
        seen = self.inputs(inputs, parameters, f"{role} input")
        made = self._samples(outputs, f"{role} output", 1)
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
        validation: Validation,
        seed: int,
    ) -> tuple[Pair, Pair]:
        """Return training and validation pairs, as `parts` does, and no calibration pairs."""
        training, held_out, _ = self.parts(inputs, outputs, parameters, validation, False, seed)
        return training, held_out

    def parts(
        self,
        inputs: Fields | None,
        outputs: Fields,
        parameters: Any,
        validation: Validation,
        calibration: Calibration,
        seed: int,
    ) -> tuple[Pair, Pair, Pair | None]:
        """Return training, validation and calibration pairs.

        `validation` is a pair, a triple with parameters, or the share to hold out, by default a
        tenth. Half of what is held out is for calibration, if that is enough, unless it is false or
        given.
        """
        if validation is None or isinstance(validation, int | float):
            share = _VALIDATION_SHARE if validation is None else validation
            halves = calibration is None or calibration is True
            kept, *held = hold_out((inputs, outputs, parameters), seed, share, halves=halves)
            inputs, outputs, parameters = kept
            validation = held[0]
            calibration = held[1] if len(held) > 1 else calibration
        training = self.pair(inputs, outputs, parameters, "training")
        known = replace(self, like=(training.inputs.space, training.outputs.space))
        held_out = known._held_out(validation, "validation", training)
        if calibration is None or isinstance(calibration, bool):
            return training, held_out, None
        return training, held_out, known._held_out(calibration, "calibration", training)

    def _held_out(self, given: Any, role: str, training: Pair) -> Pair:
        """Return pairs beside the training, which must have the same spaces."""
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            came = type(given).__name__
            if isinstance(given, tuple | list):
                came = f"{len(given)} things"
            share = ", or the share of samples to hold out such as 0.2"
            raise TwoscaleError(
                f"{role} is a pair (inputs, outputs), with parameters a triple"
                f"{share if role == 'validation' else ''}, got {came}"
            )
        x, u, *rest = given
        held_out = self.pair(x, u, rest[0] if rest else None, role)
        for name, one, other in (
            ("inputs", training.inputs.space, held_out.inputs.space),
            ("outputs", training.outputs.space, held_out.outputs.space),
        ):
            if one.shape != other.shape or one.parameters != other.parameters:
                raise TwoscaleError(
                    f"training {name} are {one.contents}, {role} {name} {other.contents}: they "
                    "must agree"
                )
        return held_out


def check_alike(name: str, fitted: Space, given: Space) -> None:
    """Raise if fields differ from those of a fitted space: contents, periodic axes or names."""
    if given.shape != fitted.shape or given.parameters != fitted.parameters:
        raise TwoscaleError(
            f"this surrogate was fitted on {name}s of {fitted.contents}, these are {given.contents}"
            f"{_way_out(fitted, given)}"
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
        came = Space(Grid((height, width)), channels, parameters=min(space.parameters, channels))
        raise TwoscaleError(
            f"this surrogate was fitted on {name}s of {space.contents}, these are {came.contents}"
            f"{_way_out(space, came)}"
        )


def _way_out(fitted: Space, given: Space) -> str:
    """Return what to do about fields that only have another grid."""
    alike = (fitted.channels, fitted.parameters) == (given.channels, given.parameters)
    sides = zip(fitted.grid.shape, given.grid.shape, strict=True)
    alike = alike and all((one == 1) == (other == 1) for one, other in sides)
    return ": set resample to interpolate between the grids" if alike else ""


@dataclass(frozen=True)
class Given:
    """Inputs of a fitted surrogate as a field batch, and how their predictions are handed back."""

    fields: Tensor  # (b, C, H, W) on the fitted grid, parameters as the last channels
    single: bool  # one sample came without an axis of samples
    resampling: Resampling | None  # if they came on another grid
    kind: Any  # the user's array

    def result(self, predicted: Tensor, spaces: tuple[Space, Space], rank: int) -> Any:
        """Return predictions (b, C, H, W) as an array of the user's kind.

        `spaces` are those of inputs and outputs. Predictions have as many axes as the training
        outputs, without that of the samples for one sample.
        """
        if self.resampling is not None:
            predicted = self.resampling.leave(predicted)
        shown = users_rank(predicted, rank)
        shown = shown[0] if self.single else shown
        if isinstance(self.kind, Tensor) or shown.requires_grad:
            return shown
        if not isinstance(self.kind, np.ndarray) and is_labelled(self.kind):
            return labelled_like(self.kind, shown.numpy(), spaces, single=self.single)
        return shown.numpy()


def given_inputs(
    inputs: Any, parameters: Any, spaces: tuple[Space, Space], rank: int, *, resample: bool = False
) -> Given:
    """Return inputs of a fitted surrogate, read as its spaces of inputs and outputs say.

    `rank` is that of the training inputs. Shapes are checked, values are not. With `resample`
    fields may be on another grid.
    """
    space = spaces[0]
    if inputs is None and parameters is None:
        raise TwoscaleError("there is nothing to predict from: give input fields")
    fields, single, resampling = None, False, None
    if inputs is not None:
        fields, single = four_axes(inputs, "input", space, any_grid=resample, rank=rank)
        if resample and fields.shape[1] == space.field_channels:
            grid = Grid((fields.shape[2], fields.shape[3]), periodic=space.grid.periodic)
            resampling = Resampling.of_inputs(spaces, grid).check()
            fields = resampling.enter(fields)
    scalars, alone = _scalars(parameters, space, single=single or inputs is None)
    if fields is None:
        assert scalars is not None
        fields, single = scalars[:, :, None, None], alone
    elif scalars is not None:
        fields = _with_channels(fields, scalars)
    check_shape("input", space, fields.shape[1:])
    changes = resampling if resampling is not None and resampling.changes else None
    return Given(fields, single, changes, parameters if inputs is None else inputs)


def with_samples_axis(
    fields: np.ndarray | None, scalars: np.ndarray | None, space: Space, **options: Any
) -> tuple[np.ndarray | None, np.ndarray | None, bool]:
    """Return fields and parameters with an axis of samples, and whether they came without it.

    Options are those of `read_shape`.
    """
    if fields is not None:
        _, single = read_shape(fields.shape, "input", space, **options)
        fields = fields[None] if single else fields
    else:
        assert scalars is not None
        single = space.parameters > 1 and scalars.shape == (space.parameters,)
    if single and scalars is not None and scalars.ndim == 1:
        scalars = scalars[None]
    return fields, scalars, single


def predicted_space(
    spaces: tuple[Space, Space], shape: Sequence[int] | None, *, resample: bool = False
) -> Space:
    """Return the space of predictions from input fields of a shape, with an axis of samples."""
    if shape is None or not resample:
        return spaces[1]
    (_, _, height, width), _ = read_shape(shape, "input", spaces[0], any_grid=True)
    given = Grid((height, width), periodic=spaces[0].grid.periodic)
    return on_grid(spaces[1], Resampling.of_inputs(spaces, given).given[1])


def _scalars(parameters: Any, space: Space, *, single: bool) -> tuple[Tensor | None, bool]:
    """Return parameters (samples, P) of a fitted space, and whether they came as one row (P,).

    A row is one sample where there is a `single` one, and where each sample has several.
    """
    scalars, alone = None, False
    if parameters is not None:
        scalars = as_parameters(parameters)
        alone = single and space.parameters > 1 and scalars.shape == (space.parameters, 1)
        alone = alone and np.ndim(parameters) == 1
        scalars = scalars.T if alone else scalars
    given = 0 if scalars is None else scalars.shape[1]
    if given != space.parameters:
        wanted = f"{space.parameters} parameters" if space.parameters else "no parameters"
        raise TwoscaleError(
            f"this surrogate was fitted with {wanted} for each sample, got {given or 'none'}"
        )
    return scalars, alone


def _with_channels(fields: Tensor, scalars: Tensor) -> Tensor:
    """Return fields (b, C, H, W) with scalars (b, P) as P further channels."""
    if len(scalars) != len(fields):
        raise TwoscaleError(
            f"there are {len(fields)} input fields but parameters of {len(scalars)} samples"
        )
    return with_channels(fields, scalars.to(fields.device))


def hold_out(
    data: tuple[Any, Any, Any],
    seed: int,
    share: float = _VALIDATION_SHARE,
    *,
    halves: bool = False,
) -> list[tuple[Any, ...]]:
    """Return inputs, outputs and parameters for training, and the same for validation.

    The latter are a share of a shuffle, at least one sample. With `halves` the second half of them
    follows apart, for calibration, if it is enough for that.
    """
    if not 0 < share < 1:
        raise TwoscaleError(
            f"the share of samples for validation must be between 0 and 1, got {share}: to choose "
            "on the training samples themselves, pass them as validation=(inputs, outputs)"
        )
    kinds = ("input fields", "output fields", "parameters")
    arrays = [
        None if one is None else _rows_of(one, name) for one, name in zip(data, kinds, strict=True)
    ]
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
    held = min(max(1, round(share * count)), count - 2)
    apart = set_apart(held) if halves else 0
    sizes = [count - held, held - apart, apart]
    return [
        tuple(None if one is None else one[_rows(one, part.sort().values)] for one in arrays)
        for part in order.split([size for size in sizes if size])
    ]


def _rows_of(fields: Any, name: str) -> Any:
    """Return an array of which rows can be taken."""
    if isinstance(fields, Samples) or is_source(fields):
        raise TwoscaleError(
            f"only arrays are split into training and validation fields, got "
            f"{type(fields).__name__}: pass validation=(inputs, outputs)"
        )
    array = usual_array(fields, name)
    if not array.ndim:
        raise TwoscaleError("fields and parameters have an axis of samples, got one number")
    return array


def _rows(array: Any, rows: Tensor) -> Any:
    return rows.to(array.device) if isinstance(array, Tensor) else rows.numpy()
