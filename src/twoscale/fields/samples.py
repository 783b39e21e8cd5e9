"""Fields as users have them, and as everything inside takes them: four axes, of a known space."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.arrays import StoredRows, StoredRowsSource, as_array
from twoscale.fields.source import (
    ArraySource,
    Batch,
    BatchSource,
    FieldSource,
    FirstFields,
    SentSource,
    Shape,
    gather,
    in_memory,
    is_source,
    single_precision,
)

Array = TypeVar("Array", np.ndarray, Tensor)

_FEW_ROWS = 4  # rows of long fields that are perhaps channels
_DOT_VALUES = 2**31 - 1  # at most, in one product


@dataclass(frozen=True)
class Source:
    """Samples of fields (samples, channels, *shape), with the space they are of.

    `parameters` (samples, P) are scalars beside the fields. `rank` is the number of axes that users
    see: 4 with channels, 3 without, 2 for fields on a line, and 0 for parameters alone. Samples
    with the same number in `groups` (samples,) belong together, such as those of one trajectory; by
    default none do.
    """

    fields: FieldSource
    space: Space
    rank: int = 4
    groups: Tensor | None = None
    parameters: Tensor | None = None

    def __len__(self) -> int:
        return self.fields.shape[0]

    def to(self, device: torch.device, *, resident: bool = True) -> Source:
        """Return the same on a device: moved there, or sent in chunks on each pass."""
        fields = self.fields.to(device) if resident else SentSource(self.fields, device)
        parameters = None if self.parameters is None else self.parameters.to(device)
        return replace(self, fields=fields, parameters=parameters)

    @property
    def scalars(self) -> Tensor:
        """Return the parameters (samples, P) of all samples; P may be 0."""
        return torch.zeros(len(self), 0) if self.parameters is None else self.parameters

    @property
    def batches(self) -> BatchSource:
        """Return what reads fields with their parameters."""
        return BatchSource(self.fields, self.scalars)

    def first(self, samples: int) -> Source:
        """Return the first samples; no others are read."""
        rest = (None if one is None else one[:samples] for one in (self.groups, self.parameters))
        groups, parameters = rest
        first = FirstFields(self.fields, samples)
        return replace(self, fields=first, groups=groups, parameters=parameters)

    def loaded(self) -> Source:
        """Return the same in memory."""
        if in_memory(self.fields):
            return self
        return replace(self, fields=ArraySource(gather(self.fields)))

    def batch(self) -> Batch:
        """Return all samples in memory."""
        fields = gather(self.fields)
        return Batch(fields, self.scalars.to(fields.device))


Fields = Any
"""Arrays of any kind (NumPy, torch, xarray, Zarr, HDF5, lists), sources, or samples."""


def as_samples(
    fields: Fields,
    name: str,
    *,
    periodic: tuple[bool, bool] = (False, False),
    names: Sequence[str] | None = None,
    like: Space | None = None,
    any_grid: bool = False,
) -> Source:
    """Return fields as samples, or say what is wrong with them.

    `like` and `any_grid` say how axes are read: see `read_shape`.
    """
    if names is not None and (isinstance(names, str) or not isinstance(names, Sequence)):
        raise TwoscaleError(f"the names of channels are a list of texts, got {names!r}")
    if isinstance(fields, Source):
        return fields
    if is_source(fields):
        rank = _rank_of_source(fields, name)
        source: FieldSource = fields
    else:
        array = usual_array(fields, f"{name} fields")
        rank = array.ndim
        shape, _ = read_shape(array.shape, name, like, any_grid=any_grid)
        if isinstance(array, StoredRows):
            source = StoredRowsSource(array, shape, f"{name} fields")
        else:
            values = _tensor(array).reshape(shape)
            check_finite(values, name)
            source = ArraySource(values)
    _, channels, height, width = source.shape
    grid = Grid((height, width), periodic=periodic)
    space = Space(grid, channels, names=None if names is None else tuple(names))
    return Source(source, space, rank)


def _rank_of_source(fields: FieldSource, name: str) -> int:
    """Return how many axes users see of a source: no channels where there is a single one."""
    if len(fields.shape) != 4:
        raise TwoscaleError(
            f"a source of {name} fields has the shape (samples, channels, height, width), got "
            f"{tuple(fields.shape)}"
        )
    return 3 if fields.shape[1] == 1 else 4


def read_shape(
    shape: Sequence[int],
    name: str,
    like: Space | None = None,
    *,
    any_grid: bool = False,
    rank: int | None = None,
) -> tuple[Shape, bool]:
    """Return the axes (samples, channels, height, width) of an array, and whether it is one sample.

    Arrays are (samples, height, width), with channels (samples, channels, height, width), or
    (samples, length) for fields on a line. With a known space `like`, a single channel and a single
    row may be left out or not, and so may the samples' axis of one sample. With `any_grid` the
    sides need not be those of `like`. An array that can be read as one sample and as a batch of one
    is the former if it has one axis less than the `rank` of the training fields.

    >>> read_shape((5, 8, 9), "input")
    ((5, 1, 8, 9), False)
    >>> read_shape((8, 9), "input", Space(Grid((8, 9))))
    ((1, 1, 8, 9), True)
    """
    given = tuple(int(side) for side in shape)
    if len(given) == 5:
        raise TwoscaleError(
            f"the {name} fields have shape {given}: fields in three dimensions are not supported; "
            "take slices, or give one axis as channels"
        )
    if like is not None and len(given) and all(given):
        ways = [(given[0], given[1:], False), (1, given, True)]
        for first, rest, single in ways if rank != len(given) + 1 else reversed(ways):
            if inner := _inner_shape(rest, like, any_grid=any_grid):
                return (first, *inner), single
        if len(given) == 2 and like.channels == 1 and like.grid.shape[0] > 1:
            return (1, 1, *given), True  # an image of another size
    if not 2 <= len(given) <= 4 or not all(given):
        raise TwoscaleError(
            f"the {name} fields must have shape (samples, height, width), (samples, channels, "
            f"height, width) or (samples, length), got {given}"
        )
    samples, *sides = given
    channels, height, width = (*(1,) * (3 - len(sides)), *sides)
    return (samples, channels, height, width), False


def _inner_shape(
    sides: tuple[int, ...], like: Space, *, any_grid: bool
) -> tuple[int, int, int] | None:
    """Return (channels, height, width) if one sample of a space may have these sides."""
    channels, (height, width) = like.channels, like.grid.shape
    left_out: list[tuple[int, ...]] = [()]  # places of axes of one entry that users may leave out
    left_out += [(0,)] if channels == 1 else []
    left_out += [(1,)] if height == 1 else []
    left_out += [(0, 1)] if channels == height == 1 else []
    for places in left_out:
        if len(sides) + len(places) != 3:
            continue
        found = list(sides)
        for place in places:
            found.insert(place, 1)
        line = (found[1] == 1) == (height == 1)
        if found[0] == channels and line and (any_grid or found[1:] == [height, width]):
            return found[0], found[1], found[2]
    return None


def rows_or_channels(shape: Sequence[int], name: str) -> tuple[str, str] | None:
    """Return how few rows were read, and what to do if they are channels; None of many rows.

    The shape is (samples, height, width).

    >>> rows_or_channels((60, 64, 64), "input") is None
    True
    """
    if len(shape) != 3 or not 1 < shape[1] <= _FEW_ROWS or shape[2] < _FEW_ROWS * shape[1]:
        return None
    return (
        f"the {name} fields have shape {tuple(shape)}, read as {shape[1]} rows of {shape[2]} nodes",
        f"if they are {shape[1]} channels on a line, give fields[:, :, None]",
    )


def with_parameters(samples: Source | None, parameters: Tensor) -> Source:
    """Return samples with parameters (samples, P) beside their fields, or these alone."""
    count = parameters.shape[1]
    if samples is None:
        nothing = ArraySource(parameters.new_zeros(len(parameters), 0, 1, 1))
        space = Space(Grid((1, 1)), 0, parameters=count)
        return Source(nothing, space, 0, parameters=parameters)
    if len(samples) != len(parameters):
        raise TwoscaleError(
            f"there are {len(samples)} input fields but parameters of {len(parameters)} samples"
        )
    names = samples.space.names
    if names is not None:
        names = (*names, *(f"parameter {place}" for place in range(count)))
    space = replace(samples.space, names=names, parameters=count)
    return replace(samples, space=space, parameters=parameters)


def four_axes(
    array: Any, name: str, like: Space | None = None, **options: Any
) -> tuple[Tensor, bool]:
    """Return an array of fields as float32 (samples, channels, height, width), values unseen.

    Also return whether it is one sample without an axis of samples. For `like` and other
    options see `read_shape`.
    """
    values = _in_memory(usual_array(array, f"{name} fields"))
    shape, single = read_shape(values.shape, name, like, **options)
    return values.reshape(shape), single


def as_parameters(array: Any, name: str = "parameters") -> Tensor:
    """Return scalar parameters as float32 (samples, P), or say what is wrong with them."""
    tensor = _in_memory(usual_array(array, name))
    if tensor.ndim not in (1, 2) or not tensor.numel():
        raise TwoscaleError(f"the {name} must have shape (samples, P), got {tuple(tensor.shape)}")
    values = tensor.reshape(len(tensor), -1)
    if not bool(values.isfinite().all()):
        raise TwoscaleError(f"the {name} contain NaN or infinite values")
    return values


def users_rank(fields: Array, rank: int) -> Array:
    """Return fields (batch, channels, height, width) with as many axes as a user's had."""
    return fields if rank == 4 else fields[:, 0] if rank == 3 else fields[:, 0, 0]


def fits_rank(space: Space, rank: int) -> bool:
    """Say whether users can have fields of a space with so many axes; 0 for parameters alone."""
    fields = space.channels
    fits = {
        0: not fields and space.grid.nodes == 1,
        2: fields == 1 and space.grid.shape[0] == 1,
        3: fields == 1,
        4: fields > 0,
    }
    return fits.get(rank, False)


def sample_shape(space: Space, rank: int) -> tuple[int, ...]:
    """Return the shape of one sample's fields with the axes that users see; without parameters.

    >>> sample_shape(Space(Grid((8, 9))), 3)
    (8, 9)
    """
    return (space.channels, *space.grid.shape)[4 - rank :]


def usual_array(array: Any, name: str) -> np.ndarray | Tensor | StoredRows:
    """Return an array of real numbers; those of NumPy and torch in memory are what they are."""
    if type(array) is np.ndarray and array.dtype.kind in "fiub":
        return array
    if isinstance(array, Tensor) and not array.is_complex():
        return array
    return as_array(array, name)


def _tensor(array: np.ndarray | Tensor) -> Tensor:
    return array.float() if isinstance(array, Tensor) else single_precision(array)


def _in_memory(array: np.ndarray | Tensor | StoredRows) -> Tensor:
    if isinstance(array, StoredRows):
        return torch.cat([_tensor(part) for part in array.parts()])
    return _tensor(array)


def check_finite(fields: Tensor, name: str) -> None:
    """Raise if any value is NaN or infinite."""
    if not math.isfinite(float(fields.sum())):  # tells at a tenth of the cost
        _look_closely(fields, name)


def check_prediction(
    inputs: Batch, predicted: Tensor, check_inputs: Callable[[Batch], None] = lambda inputs: None
) -> None:
    """Raise if any value of a prediction or of its input fields is NaN or infinite.

    `check_inputs` raises if values of the inputs explain it.

    Where both have as many values one product sees to both, and a GPU is waited for once: whatever
    is multiplied by NaN or an infinity is one of them too.
    """
    fields = inputs.fields.detach()
    one, other = fields.reshape(-1), predicted.reshape(-1)
    if len(one) == len(other) <= _DOT_VALUES:
        finite = math.isfinite(float(torch.dot(one, other)))
    else:
        finite = math.isfinite(float(one.sum() + other.sum()))
    if finite:
        return
    _look_closely(fields, "input")
    check_inputs(inputs)
    _look_closely(
        predicted,
        "predicted",
        ": the inputs may be far from those of the training, or values near that end",
    )


def _look_closely(fields: Tensor, name: str, cause: str = "") -> None:
    """Raise if a value is not finite; the sum of finite ones may be infinite."""
    for chunk in ArraySource(fields).chunks():
        if not bool(torch.isfinite(chunk).all()):
            raise TwoscaleError(
                f"the {name} fields contain NaN or infinite values (in single precision, which "
                f"ends at 3.4e38){cause}"
            )
