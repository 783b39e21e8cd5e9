"""The reader of user arrays: fields and parameters become checked pairs, some of them held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.samples import (
    Fields,
    Source,
    as_parameters,
    as_samples,
    rows_or_channels,
    usual_array,
    with_parameters,
)
from twoscale.fields.source import is_source
from twoscale.trust import set_apart

Validation = tuple[Any, ...] | Pairs | float | None
"""Validation data: (inputs, outputs), with parameters a triple, or a share of the samples."""

Calibration = tuple[Any, ...] | Pairs | bool | None
"""Calibration data: (inputs, outputs), with parameters a triple; or whether to set some apart."""

_VALIDATION_SHARE = 0.1


@dataclass(frozen=True)
class InputReader:
    """How arrays are read: which axes wrap, what channels are called, or what fields are like."""

    periodic: tuple[bool, bool] = (False, False)
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    like: tuple[Space, Space] | None = None  # spaces of inputs and outputs that are known already
    any_grid: bool = False  # the grids need not be those of the known spaces

    def _source(self, fields: Fields, name: str, side: int) -> Source:
        """Return the inputs (side 0) or outputs (side 1) of one role."""
        if isinstance(fields, Source):
            return fields
        if self.like is None:
            names = (self.input_names, self.output_names)[side]
            source = as_samples(fields, name, periodic=self.periodic, names=names)
            self._point_out_few_rows(source, name)
            return source
        known = self.like[side]
        source = as_samples(
            fields, name, periodic=known.grid.plane.periodic, like=known, any_grid=self.any_grid
        )
        names = None if known.names is None else known.names[: known.channels]
        if names is None or len(names) != source.space.channels:
            return source  # another number of channels is told as what it is, by `check_alike`
        return replace(source, space=replace(source.space, names=names))

    @staticmethod
    def _point_out_few_rows(source: Source, name: str) -> None:
        if source.rank != 3:
            return
        hint = rows_or_channels((len(source), *source.space.grid.shape), name)
        if hint is not None:
            warnings.warn(": ".join(hint), TwoscaleWarning, stacklevel=2)

    def inputs(self, fields: Fields | None, parameters: Any, name: str) -> Source:
        """Return the inputs of one role: fields, parameters, or both."""
        if fields is None and parameters is None:
            raise TwoscaleError(f"there are neither {name} fields nor parameters: give one of them")
        source = None if fields is None else self._source(fields, name, 0)
        if parameters is None:
            assert source is not None
            return source
        return with_parameters(source, as_parameters(parameters))

    def pairs(self, inputs: Fields | None, outputs: Fields, parameters: Any, role: str) -> Pairs:
        """Return the pairs of one role (training, validation, test), or say what is wrong."""
        seen = self.inputs(inputs, parameters, f"{role} input")
        made = self._source(outputs, f"{role} output", 1)
        if len(seen) != len(made):
            raise TwoscaleError(
                f"there are {len(seen)} {role} inputs but {len(made)} outputs: they must be pairs"
            )
        return Pairs(seen, made)

    def split(
        self,
        inputs: Fields | None,
        outputs: Fields,
        parameters: Any = None,
        validation: Validation = None,
        calibration: Calibration = None,
        *,
        seed: int,
    ) -> SplitData:
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
        training = self.pairs(inputs, outputs, parameters, "training")
        known = replace(self, like=training.spaces)
        held_out = known._held_out(validation, "validation", training)
        if calibration is None or isinstance(calibration, bool):
            return SplitData(training, held_out)
        apart = known._held_out(calibration, "calibration", training)
        return SplitData(training, held_out, apart)

    def _held_out(self, given: Any, role: str, training: Pairs) -> Pairs:
        """Return pairs beside the training, which must have the same spaces."""
        held_out = given if isinstance(given, Pairs) else self._pairs_of(given, role)
        names = ("inputs", "outputs")
        for name, one, other in zip(names, training.spaces, held_out.spaces, strict=True):
            if one.shape != other.shape or one.parameters != other.parameters:
                raise TwoscaleError(
                    f"training {name} are {one.contents}, {role} {name} {other.contents}: they "
                    "must agree"
                )
        return held_out

    def _pairs_of(self, given: Any, role: str) -> Pairs:
        """Return the pairs of a tuple that a user gave."""
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            came = type(given).__name__
            if isinstance(given, tuple | list):
                came = f"{len(given)} things"
            share = ", or the share of samples to hold out such as 0.2"
            raise TwoscaleError(
                f"{role} is a pair (inputs, outputs), with parameters a triple"
                f"{share if role == 'validation' else ''}, got {came}"
            )
        inputs, outputs, *rest = given
        return self.pairs(inputs, outputs, rest[0] if rest else None, role)


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
    if isinstance(fields, Source) or is_source(fields):
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
