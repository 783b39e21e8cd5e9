"""Predictions: the inputs they are made from, batches, recordings and gradients, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.arrays import is_labelled
from twoscale.fields.samples import as_parameters, four_axes, read_shape, users_rank
from twoscale.fields.source import Batch, chunk_length, slices
from twoscale.networks.field_map import interpolate_cubic, resample
from twoscale.runtime.cuda_graphs import replayed
from twoscale.runtime.progress import Progress

Predict = Callable[[Batch], Tensor]
"""From inputs to predicted fields."""

FieldMapping = Callable[[Tensor], Tensor]
"""From fields to fields."""

_USUAL = ("channel", "row", "column")  # names of axes that the inputs do not have


@dataclass(frozen=True)
class Resampling:
    """The way from given grids to those of a fitted surrogate, and back.

    Fields come in by linear interpolation, which stays between the values of neighbouring nodes:
    a positive coefficient stays positive. Predictions go out by cubic interpolation, because
    solutions are smooth. Where nodes of both grids coincide the values are taken as they are.

    >>> spaces = (Space(Grid((9, 9))), Space(Grid((9, 9))))
    >>> Resampling(spaces, (Grid((17, 17)), Grid((17, 17)))).changes
    True
    """

    fitted: tuple[Space, Space]
    given: tuple[Grid, Grid]

    @classmethod
    def of_inputs(cls, fitted: tuple[Space, Space], given: Grid) -> Resampling:
        """Return the way of inputs whose outputs are not known.

        Predictions are wanted on the inputs' grid if both were fitted on one grid, otherwise on the
        grid that outputs were fitted on.
        """
        inputs, outputs = (space.grid for space in fitted)
        return cls(fitted, (given, given if inputs == outputs else outputs))

    def check(self) -> Resampling:
        """Return this, or raise if a line would become an image or the other way round."""
        for name, space, grid in zip(("input", "output"), self.fitted, self.given, strict=True):
            pairs = zip(space.grid.shape, grid.shape, strict=True)
            if any((one == 1) != (other == 1) for one, other in pairs):
                raise TwoscaleError(
                    f"this surrogate was fitted on {name}s of {space.grid} nodes, these have "
                    f"{grid}: fields on a line and images are not interpolated into each other"
                )
        return self

    @property
    def changes(self) -> bool:
        """Say whether any field is interpolated."""
        return any(
            space.grid.shape != grid.shape
            for space, grid in zip(self.fitted, self.given, strict=True)
        )

    def enter(self, inputs: Tensor) -> Tensor:
        """Return inputs (batch, channels, h, w) of the given grid on the fitted one."""
        grid = self.fitted[0].grid
        return resample(inputs, *grid.plane)

    def leave(self, outputs: Tensor) -> Tensor:
        """Return outputs (batch, channels, h, w) of the fitted grid on the given one."""
        return interpolate_cubic(
            outputs, self.given[1].plane.shape, self.fitted[1].grid.plane.periodic
        )

    def back(self, outputs: Tensor) -> Tensor:
        """Return outputs of the given grid on the fitted one."""
        grid = self.fitted[1].grid
        return interpolate_cubic(outputs, *grid.plane)

    def interpolated(self, function: FieldMapping | None = None) -> FieldMapping:
        """Return the way of true outputs in, perhaps through a function, and out again."""
        if function is None:
            return lambda outputs: self.leave(self.back(outputs))
        return lambda outputs: self.leave(function(self.back(outputs)))

    def predict(self, predict: Predict) -> Predict:
        """Return a prediction from given grid to given grid."""
        return lambda inputs: self.leave(predict(inputs.map(self.enter)))

    @property
    def record(self) -> dict[str, Any]:
        """Return the grids, for the metrics: [height, width] of inputs and outputs."""
        given = [list(grid.shape) for grid in self.given]
        fitted = [list(space.grid.shape) for space in self.fitted]
        return {
            "resampled_from": {"input": given[0], "output": given[1]},
            "resampled_to": {"input": fitted[0], "output": fitted[1]},
        }


def on_grid(space: Space, grid: Grid) -> Space:
    """Return a space on another grid that wraps along the same axes."""
    return replace(space, domain=Grid(grid.shape, periodic=space.grid.periodic))


def prediction_of(operator: nn.Module, *, differentiable: bool = False) -> Predict:
    """Return how an operator predicts: replayed, or with a gradient.

    The gradient is that of the inputs; the operator's own weights take none.
    """
    if not differentiable:
        return partial(_replayed, operator)
    weights = {name: weight.detach() for name, weight in operator.named_parameters()}
    return lambda batch: functional_call(operator, weights, batch.tensors)


def _replayed(operator: nn.Module, inputs: Batch) -> Tensor:
    return replayed(operator, *inputs.tensors)


def called(operator: nn.Module, inputs: Batch) -> Tensor:
    """Return what an operator makes of inputs; nothing is recorded."""
    predicted: Tensor = operator(*inputs.tensors)
    return predicted


def in_batches(
    predict: Predict,
    inputs: Batch,
    length: int,
    device: torch.device,
    progress: Progress | None = None,
) -> Tensor:
    """Return the predictions of checked inputs, on their own device, `length` at a time."""
    home, count = inputs.fields.device, inputs.fields.shape[0]
    if count <= length and progress is None:
        return predict(inputs.to(device)).to(home)
    made = []
    room: Tensor | None = None
    for part in slices(count, length):
        one = predict(inputs[part].to(device))
        if one.requires_grad:
            made.append(one.to(home))
        else:
            # One result that parts are copied into: a list would be copied once more at the end.
            if room is None:
                room = one.new_empty((count, *one.shape[1:]), device=home)
            room[part] = one
        if progress:
            progress("fields", part.stop, count, "")
    return torch.cat(made) if room is None else room


def batch_length(spaces: tuple[Space, Space], device: torch.device) -> int:
    """Return how many fields are predicted at a time: as many as make a chunk of memory."""
    largest = max(spaces[0].shape, spaces[1].shape, key=prod)
    return chunk_length(*largest, cuda=device.type == "cuda")


def batched(
    operator: nn.Module, spaces: tuple[Space, Space], device: torch.device, length: int | None
) -> Predict:
    """Return the predictions of an operator, batch by batch and without gradients."""

    @torch.no_grad()
    def predict(inputs: Batch) -> Tensor:
        each = length or batch_length(spaces, device)
        return in_batches(prediction_of(operator), inputs, each, device)

    return predict


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
    """Raise if fields of (channels, *shape) are not those of a fitted space."""
    if tuple(shape) != space.shape:
        channels, *sides = shape
        came = Space(Grid(sides), channels, parameters=space.parameters)
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
class PredictionInputs:
    """Inputs of a fitted surrogate as a batch, and how their predictions are handed back."""

    batch: Batch  # on the fitted grid
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


def prediction_inputs(
    inputs: Any, parameters: Any, spaces: tuple[Space, Space], rank: int, *, resample: bool = False
) -> PredictionInputs:
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
        if resample and fields.shape[1] == space.channels:
            grid = Grid((fields.shape[2], fields.shape[3]), periodic=space.grid.periodic)
            resampling = Resampling.of_inputs(spaces, grid).check()
            fields = resampling.enter(fields)
    scalars, alone = _scalars(parameters, space, single=single or inputs is None)
    if fields is None:
        assert scalars is not None
        fields, single = scalars.new_zeros(len(scalars), *space.shape), alone
    elif scalars is not None:
        if len(scalars) != len(fields):
            raise TwoscaleError(
                f"there are {len(fields)} input fields but parameters of {len(scalars)} samples"
            )
        scalars = scalars.to(fields.device)
    check_shape("input", space, fields.shape[1:])
    changes = resampling if resampling is not None and resampling.changes else None
    return PredictionInputs(
        Batch.of(fields, scalars), single, changes, parameters if inputs is None else inputs
    )


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


def labelled_like(
    given: Any, values: np.ndarray, spaces: tuple[Space, Space], *, single: bool
) -> Any:
    """Return predictions as a labelled array of the kind of the inputs `given`.

    `spaces` are those of inputs and outputs. Samples, rows and columns keep their names, and their
    coordinates if there are as many of them. An axis of another length is called `output_` and the
    input's name. Channels are called "channel" and have the names of the output channels, if these
    have any. Axes that the inputs lack are called "row" and "column". Name and attributes of the
    inputs are not taken over.
    """
    inputs, outputs = spaces
    own = [str(name) for name in given.dims]
    first = [] if single else own[:1]
    axes = 0 if not inputs.channels else 1 if inputs.grid.shape[0] == 1 else 2
    places = own[len(own) - axes :]
    wanted = (*_USUAL[: 3 - len(places)], *places)[3 - (values.ndim - len(first)) :]
    dims = list(first)
    for name, size in zip(wanted, values.shape[len(first) :], strict=True):
        kept = name not in dims and given.sizes.get(name, size) == size
        dims.append(name if kept else f"output_{name}")
    coords = {name: given.coords[name] for name in dims if name in given.coords}
    channels = len(first)
    if values.ndim - channels == len(_USUAL) and outputs.names is not None:
        coords[dims[channels]] = list(outputs.names)
    return type(given)(values, dims=dims, coords=coords)
