"""Fields as users have them, and as everything inside takes them: four axes, of a known space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid, Space
from twoscale.fields.source import ArraySource, FieldSource, SentSource, WithParameters, gather

_DOT_VALUES = 2**31 - 1  # at most, in one product


@dataclass(frozen=True)
class Samples:
    """Samples of fields (samples, channels, height, width), what they are made of, and their rank.

    `rank` is the number of axes that users see: 4 with channels, 3 without, 2 for fields on a line,
    and 0 for parameters alone.
    """

    source: FieldSource
    space: Space
    rank: int

    def __len__(self) -> int:
        return self.source.shape[0]

    def to(self, device: torch.device, *, resident: bool = True) -> Samples:
        """Return the same on a device: moved there, or sent in chunks on each pass."""
        source = self.source.to(device) if resident else SentSource(self.source, device)
        return replace(self, source=source)

    def tensor(self) -> Tensor:
        """Return all samples as one tensor."""
        return gather(self.source)


Fields = np.ndarray | Tensor | FieldSource | Samples


def as_samples(
    fields: Fields,
    name: str,
    *,
    periodic: tuple[bool, bool] = (False, False),
    names: Sequence[str] | None = None,
) -> Samples:
    """Return fields as samples, or say what is wrong with them."""
    if names is not None and (isinstance(names, str) or not isinstance(names, Sequence)):
        raise TwoscaleError(f"the names of channels are a list of texts, got {names!r}")
    if isinstance(fields, Samples):
        return fields
    if isinstance(fields, np.ndarray | Tensor):
        rank = fields.ndim
        values = four_axes(fields, name)
        check_finite(values, name)
        fields = ArraySource(values)
    else:
        rank = _rank_of_source(fields, name)
    _, channels, height, width = fields.shape
    grid = Grid(height, width, periodic)
    space = Space(channels, grid, names=None if names is None else tuple(names))
    return Samples(fields, space, rank)


def _rank_of_source(fields: FieldSource, name: str) -> int:
    """Return how many axes users see of a source: no channels where there is a single one."""
    if not (hasattr(fields, "chunks") and hasattr(fields, "shape")):
        raise TwoscaleError(f"the {name} fields must be an array, got {type(fields).__name__}")
    if len(fields.shape) != 4:
        raise TwoscaleError(
            f"a source of {name} fields has the shape (samples, channels, height, width), got "
            f"{tuple(fields.shape)}"
        )
    return 3 if fields.shape[1] == 1 else 4


def with_parameters(samples: Samples | None, parameters: Tensor) -> Samples:
    """Return samples with parameters (samples, P) as their last channels, or these alone."""
    count = parameters.shape[1]
    if samples is None:
        source = ArraySource(parameters[:, :, None, None])
        return Samples(source, Space(count, Grid(1, 1), count), 0)
    if len(samples) != len(parameters):
        raise TwoscaleError(
            f"there are {len(samples)} input fields but parameters of {len(parameters)} samples"
        )
    space = samples.space
    names = space.names
    if names is not None:
        names = (*names, *(f"parameter {place}" for place in range(count)))
    wider = Space(space.channels + count, space.grid, count, names)
    return Samples(WithParameters(samples.source, parameters), wider, samples.rank)


def four_axes(array: Any, name: str) -> Tensor:
    """Return an array of fields as float32 (samples, channels, height, width), values unseen.

    Arrays may be (samples, height, width), with channels (samples, channels, height, width), or
    (samples, length) for fields on a line.
    """
    tensor = _real(array, f"{name} fields")
    if tensor.ndim == 5:
        raise TwoscaleError(
            f"the {name} fields have shape {tuple(array.shape)}: fields in three dimensions are "
            "not supported; take slices, or give one axis as channels"
        )
    if not 2 <= tensor.ndim <= 4 or not tensor.numel():
        raise TwoscaleError(
            f"the {name} fields must have shape (samples, height, width), (samples, channels, "
            f"height, width) or (samples, length), got {tuple(array.shape)}"
        )
    missing = 4 - tensor.ndim
    return tensor.reshape(len(tensor), *(1,) * missing, *tensor.shape[1:])


def as_parameters(array: Any, name: str = "parameters") -> Tensor:
    """Return scalar parameters as float32 (samples, P), or say what is wrong with them."""
    tensor = _real(array, name)
    if tensor.ndim not in (1, 2) or not tensor.numel():
        raise TwoscaleError(f"the {name} must have shape (samples, P), got {tuple(array.shape)}")
    values = tensor.reshape(len(tensor), -1)
    if not bool(values.isfinite().all()):
        raise TwoscaleError(f"the {name} contain NaN or infinite values")
    return values


def users_rank(fields: Tensor, rank: int) -> Tensor:
    """Return fields (batch, channels, height, width) with as many axes as a user's had."""
    return fields if rank == 4 else fields[:, 0] if rank == 3 else fields[:, 0, 0]


def fits_rank(space: Space, rank: int) -> bool:
    """Say whether users can have fields of a space with so many axes; 0 for parameters alone."""
    fields = space.field_channels
    fits = {
        0: not fields and space.grid.nodes == 1,
        2: fields == 1 and space.grid.height == 1,
        3: fields == 1,
        4: fields > 0,
    }
    return fits.get(rank, False)


def sample_shape(space: Space, rank: int) -> tuple[int, ...]:
    """Return the shape of one sample's fields with the axes that users see; without parameters.

    >>> sample_shape(Space(1, Grid(8, 9)), 3)
    (8, 9)
    """
    return (space.field_channels, *space.grid.shape)[4 - rank :]


def _real(array: Any, name: str) -> Tensor:
    hint = "give the real and the imaginary part as two channels"
    if isinstance(array, np.ma.MaskedArray):
        raise TwoscaleError(f"the {name} are a masked array: fill in or leave out what is masked")
    if isinstance(array, np.ndarray):
        if array.dtype.kind == "c":
            raise TwoscaleError(f"the {name} must be real numbers, got {array.dtype}: {hint}")
        if array.dtype.kind not in "fiub":
            raise TwoscaleError(f"the {name} must be real numbers, got dtype {array.dtype}")
        with np.errstate(over="ignore"):  # what becomes infinite is refused with all that is
            values = np.ascontiguousarray(array, dtype=np.float32)
        return torch.from_numpy(values if values.flags.writeable else values.copy())
    if isinstance(array, Tensor):
        if array.is_complex():
            raise TwoscaleError(f"the {name} must be real numbers, got {array.dtype}: {hint}")
        return array.float()
    raise TwoscaleError(f"the {name} must be an array, got {type(array).__name__}")


def check_finite(fields: Tensor, name: str) -> None:
    """Raise if any value is NaN or infinite."""
    if not math.isfinite(float(fields.sum())):  # tells at a tenth of the cost
        _look_closely(fields, name)


def check_prediction(inputs: Tensor, predicted: Tensor) -> None:
    """Raise if any value of a prediction or of its inputs is NaN or infinite.

    Where both have as many values one product sees to both, and a GPU is waited for once: whatever
    is multiplied by NaN or an infinity is one of them too.
    """
    one, other = inputs.reshape(-1), predicted.reshape(-1)
    if len(one) == len(other) <= _DOT_VALUES:
        finite = math.isfinite(float(torch.dot(one, other)))
    else:
        finite = math.isfinite(float(one.sum() + other.sum()))
    if finite:
        return
    _look_closely(inputs, "input")
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
