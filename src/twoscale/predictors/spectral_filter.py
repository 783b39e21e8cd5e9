"""A linear map that multiplies each mode of a series by a number of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from twoscale.domain.grid import is_planar
from twoscale.domain.space import Domain, Space
from twoscale.domain.symmetries import IDENTITY, Group
from twoscale.errors import TwoscaleError
from twoscale.fields.source import chunk_length, slices
from twoscale.math.ridge import geometric_mean
from twoscale.math.series import FieldSeries, Parts, series_of, whole_numbers
from twoscale.predictors.base import (
    CodePredictor,
    Objective,
    Pack,
    PredictorCost,
    Sizes,
    load_weights,
)
from twoscale.predictors.continuation import continue_symbol
from twoscale.predictors.field_predictor import split_scores, with_constants
from twoscale.representation import Representation
from twoscale.training import CodePairs

SERIES_SAMPLES = 100
"""Each series is fitted on at most so many fields, and judged on as many, to choose one."""
_CHUNKS = 4  # to one of `chunk_length`: modes are in double precision, of inputs and outputs

_RIDGE = 1e-10  # of each channel's energy in a mode
_KNOWN = 1e-10  # of the mean square at a node; rounding of single precision is 1e-14
_MODE_WORK = 6  # times a transform's products: in double precision, with passes over the modes


def filter_work(sizes: Sizes) -> float:
    """Return the multiplications of the transforms: two of a field to learn from, three to judge.

    One that chooses among the four series of a grid tries them on a few fields.
    """
    few = min(sizes.samples, SERIES_SAMPLES)
    transforms = 2.0 * sizes.images * sizes.samples + 3.0 * sizes.validation + 4 * (2 + 3) * few
    return _MODE_WORK * transforms * sizes.nodes * sizes.sides


class SpectralFilter(CodePredictor):
    """A linear map that multiplies each mode of a series by a number of its own, in closed form.

    Fields minus their training means are expanded in sines (zero at both ends of an axis), cosines
    (no slope there) or Fourier modes (periodic axes). Mode k of the output is s_k times mode k of
    the input. The symbol s is found by least squares, mode by mode. With several channels s_k is a
    matrix. Each scalar parameter adds a field of its own.

    Modes that the training inputs lack take their numbers from the others: see `continuation.py`.
    So a field with modes that no training field has can be predicted, if the output is a
    `WholeField`. Inputs and outputs need the same grid.

    Parameters
    ----------
    objective
        With "field" and outputs that compress it learns the fields of the nearest codes; the other
        objectives give the same map.

    Attributes
    ----------
    series
        The `FieldSeries` that was chosen.
    symbol
        The numbers s (row modes, column modes, channels out, channels in, real and imaginary part),
        float32, between fields in the units of their representations.
    chosen
        "series" along rows and columns; "known_modes", the share of modes that training inputs
        have; "unknown_modes", the rule for the others; "validation_error", the relative L2 error of
        the validation fields. With several input channels there is a rule for each.

    Examples
    --------
    >>> SpectralFilter()
    SpectralFilter()
    """

    name = "filter"
    title = "spectral filter"
    closed_form = True
    cost = PredictorCost(filter_work, after=("affine", "affine-mlp", "kernel"), linear=True)
    reads_fields = True

    input_mean: Tensor  # (channels, height, width)
    output_mean: Tensor
    series_number: Tensor  # (): place of the series among those of the grid
    _input_unit: Tensor  # (channels, 1, 1)
    _output_unit: Tensor

    def __init__(self, *, objective: Objective = "block-balanced") -> None:
        super().__init__(objective=objective)
        self.series: FieldSeries | None = None
        self._ends: tuple[Representation, ...] = ()  # a tuple, so that torch does not register them

    def check(self, inputs: Space, outputs: Space) -> None:
        if inputs.grid != outputs.grid or not inputs.channels:
            raise TwoscaleError(
                f"a filter maps fields to fields on the same grid, got {inputs.contents} to "
                f"{outputs.contents}: bring them to one grid, or use another predictor"
            )

    def supports(self, domain: Domain) -> bool:
        return is_planar(domain)

    def bind(self, inputs: Representation, outputs: Representation) -> None:
        self._ends = (inputs, outputs)
        device = next(outputs.buffers()).device
        ones = torch.ones(inputs.space.parameters, *inputs.space.ones, device=device)
        unit = torch.cat([inputs.unit.to(device), ones])
        self.register_buffer("_input_unit", unit, persistent=False)
        self.register_buffer("_output_unit", outputs.unit.to(device), persistent=False)

    @torch.no_grad()
    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> None:
        self._set_means(training)
        tried = series_of(decoder.space.grid)
        best = self._best_of(tried, training, validation) if len(tried) > 1 else 0
        self.series = tried[best]
        fit = self._fit(self.series, training)
        wrong, size = self._errors(self.series, fit, validation)
        symbol, known, rules = fit.continued(self.series.waves(wrong.device))
        self.register_buffer("series_number", torch.tensor(best, device=wrong.device))
        self.symbol = nn.Parameter(_as_real(symbol).float(), requires_grad=False)
        self.chosen = {
            "series": " x ".join(self.series.names),
            "known_modes": known,
            "unknown_modes": rules[0] if len(rules) == 1 else rules,
            "validation_error": float((wrong.sum() / size.sum()).sqrt()),
        }

    def _best_of(
        self, tried: Sequence[FieldSeries], training: CodePairs, validation: CodePairs
    ) -> int:
        """Return the place of the series with the smallest validation error, by a few fields."""
        learned, judged = (
            CodePairs(pairs.inputs[:SERIES_SAMPLES], pairs.targets[:SERIES_SAMPLES])
            for pairs in (training, validation)
        )
        errors = (self._errors(series, self._fit(series, learned), judged)[0] for series in tried)
        return int(torch.stack([geometric_mean(list(wrong)) for wrong in errors]).argmin())

    def _set_means(self, training: CodePairs) -> None:
        sides = zip(self._decoders, (training.inputs, training.targets), strict=True)
        one, other = (decode(codes.mean(0, keepdim=True))[0] for decode, codes in sides)
        images = torch.stack([symmetry(one) for symmetry in self._images(training)])
        self.register_buffer("input_mean", images.mean(0))
        self.register_buffer("output_mean", other)

    @property
    def _decoders(self) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
        """Return what makes images of input codes and fields of output codes."""
        inputs, outputs = self._ends

        def images(codes: Tensor) -> Tensor:
            codes, scores = split_scores(codes, inputs.space)
            return with_constants(inputs.decode(codes), scores)

        return images, outputs.decode

    def _images(self, pairs: CodePairs) -> Group:
        """Return the symmetries under which images of the inputs are yet to be made."""
        return IDENTITY if self._ends[0].compresses else pairs.group

    def _batches(self, pairs: CodePairs) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and outputs minus their means, in their units, in double precision."""
        images, fields = self._decoders
        samples = len(pairs.inputs)
        length = chunk_length(_CHUNKS, *self.input_mean.shape)
        for place, symmetry in enumerate(self._images(pairs)):
            targets = pairs.targets[place * samples :]
            for part in slices(samples, length):
                x = symmetry(images(pairs.inputs[part])).double() - self.input_mean
                y = fields(targets[part]).double() - self.output_mean
                yield x / self._input_unit, y / self._output_unit

    def _fit(self, series: FieldSeries, training: CodePairs) -> SymbolFit:
        inputs, _ = self._ends
        pairs = (
            (self._modes(series, x), series.coefficients(y)) for x, y in self._batches(training)
        )
        level = (self.input_mean / self._input_unit).double().square().mean((1, 2))
        return SymbolFit(pairs, level[: inputs.space.channels])

    def _modes(self, series: FieldSeries, fields: Tensor) -> Tensor:
        """Return the modes (batch, channels, rows, columns) of inputs; a parameter is in all."""
        return whole_numbers(self._mode_parts(series, fields))

    def _mode_parts(self, series: FieldSeries, fields: Tensor) -> Parts:
        """Return the modes of inputs by parts."""
        count = self._ends[0].space.channels
        parts = series.coefficient_parts(fields[:, :count])
        if fields.shape[1] == count:
            return parts
        scalars = fields[:, count:, :1, :1].expand(-1, -1, *parts[0].shape[2:])
        values = (scalars, torch.zeros_like(scalars))
        return tuple(torch.cat(pair, 1) for pair in zip(parts, values, strict=False))

    def _errors(
        self, series: FieldSeries, fit: SymbolFit, validation: CodePairs
    ) -> tuple[Tensor, Tensor]:
        """Return the squares (channels,) of errors and of outputs, summed over all fields."""
        mean = (self.output_mean / self._output_unit).double()
        wrong, size = torch.zeros_like(mean[:, 0, 0]), torch.zeros_like(mean[:, 0, 0])
        for x, y in self._batches(validation):
            predicted = series.fields(apply_symbol(fit.symbol, self._modes(series, x)))
            wrong += (predicted - y).square().sum((0, 2, 3))
            size += (y + mean).square().sum((0, 2, 3))
        return wrong, torch.where(size > 0, size, 1.0)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        inputs, outputs = (end.space for end in self._ends)
        number = int(tensors.get("series_number", torch.tensor(0)))
        tried = series_of(outputs.grid)
        if not 0 <= number < len(tried):
            raise TwoscaleError("the series of the filter is unknown: the artifact is damaged")
        self.series = tried[number]
        modes = self.series.waves(torch.device("cpu")).shape[:2]
        parts = 2 if self.series.is_complex else 1
        channels = inputs.channels + inputs.parameters
        symbol = torch.zeros(*modes, outputs.channels, channels, parts)
        self.symbol = nn.Parameter(symbol, requires_grad=False)
        self.register_buffer("series_number", torch.tensor(0))
        self.register_buffer("input_mean", torch.zeros(channels, *inputs.domain.shape))
        self.register_buffer("output_mean", torch.zeros(outputs.shape))
        load_weights(self, tensors)
        return self

    def for_page(self, pack: Pack) -> dict[str, Any]:
        assert self.series is not None
        axes = self.series.axes(torch.device("cpu"), torch.float32)

        def packed(parts: Sequence[Tensor]) -> dict[str, Any]:
            return {
                name: pack(one) for name, one in zip(("real", "imaginary"), parts, strict=False)
            }

        return {
            "kind": "filter",
            "analysis": [packed(axis.analysis) for axis in axes],
            "synthesis": [packed(axis.synthesis) for axis in axes],
            "symbol": packed(self.symbol.unbind(-1)),
            "input_mean": pack(self.input_mean),
            "output_mean": pack(self.output_mean),
        }

    def forward(self, codes: Tensor) -> Tensor:
        assert self.series is not None
        images, _ = self._decoders
        fields = (images(codes) - self.input_mean) / self._input_unit
        modes = _apply_parts(self.symbol, self._mode_parts(self.series, fields))
        filtered = self.series.fields_of_parts(modes)
        return self._ends[1].encode(self.output_mean + self._output_unit * filtered)


def _as_real(symbol: Tensor) -> Tensor:
    """Return numbers as real and, if they are complex, imaginary parts along a last axis."""
    return torch.view_as_real(symbol) if symbol.is_complex() else symbol[..., None]


def _apply_parts(symbol: Tensor, modes: Parts) -> Parts:
    """Return the output modes by parts, of a symbol of `_as_real` and input modes by parts."""
    if len(modes) == 1:
        return (apply_symbol(symbol[..., 0], modes[0]),)
    (real, imaginary), (x, y) = symbol.unbind(-1), modes
    return (
        apply_symbol(real, x) - apply_symbol(imaginary, y),
        apply_symbol(real, y) + apply_symbol(imaginary, x),
    )


def apply_symbol(symbol: Tensor, inputs: Tensor) -> Tensor:
    """Return the output modes (batch, channels out, rows, columns) of input modes.

    symbol: (rows, columns, channels out, channels in).
    """
    return torch.einsum("rcoi,birc->borc", symbol, inputs)


class SymbolFit:
    """The least-squares symbol between batches of modes of inputs and outputs.

    batches: pairs of coefficients (batch, channels, row modes, column modes) in double precision.
    level: mean squares (field channels,) of the means that the inputs lack, at a node. Input
    channels after these are parameters, which have all modes.

    symbol: (row modes, column modes, channels out, channels in), real or complex.
    variance: its squared standard errors, alike.
    known: whether the inputs have a mode, (row modes, column modes, field channels).
    """

    def __init__(self, batches: Iterable[tuple[Tensor, Tensor]], level: Tensor) -> None:
        count = 0
        gram = cross = squares = torch.zeros(())
        for x, y in batches:
            gram = gram + _products(x, x)
            cross = cross + _products(y, x)
            squares = squares + y.abs().square().sum(0).permute(1, 2, 0)
            count += len(x)
        energy = gram.diagonal(dim1=-2, dim2=-1).real
        inverse = _inverse(gram, energy)
        self.symbol = cross @ inverse
        explained = (self.symbol * cross.conj()).real.sum(-1)
        rest = (squares - explained).clamp_min(0) / max(count - gram.shape[-1], 1)
        self.variance = rest[..., None] * inverse.diagonal(dim1=-2, dim2=-1).real[..., None, :]
        energy = energy[..., : len(level)] / count
        self.known = energy > _KNOWN * (level + energy.mean((0, 1)))

    def continued(self, waves: Tensor) -> tuple[Tensor, float, list[str]]:
        """Return the symbol at all modes, the share of known ones, and the rules for the others.

        waves: half waves (row modes, column modes, 2) of the modes.
        """
        symbol, rules = self.symbol.clone(), []
        for channel in range(self.known.shape[-1]):
            values, rule = continue_symbol(
                waves,
                _as_real(symbol[..., channel]).flatten(-2),
                self.variance[..., channel].repeat_interleave(1 + symbol.is_complex(), -1),
                self.known[..., channel],
            )
            symbol[..., channel] = _whole(values, symbol)
            rules.append(rule)
        return symbol, float(self.known.double().mean()), rules


def _products(x: Tensor, y: Tensor) -> Tensor:
    """Return the sums over samples of x_i conj(y_j), (rows, columns, channels i, channels j).

    Channel by channel: one product of matrices per mode would be several times slower.
    """
    sums = [(x * other.conj()).sum(0) for other in y.split(1, dim=1)]
    return torch.stack(sums, -1).movedim(0, 2)


def _inverse(gram: Tensor, energy: Tensor) -> Tensor:
    """Return the inverse of Gram matrices (..., channels, channels), slightly regularised.

    The ridge is relative to each channel's energy (..., channels): a weak channel keeps its part.
    """
    root = torch.where(energy > 0, energy, 1.0).sqrt()
    scale = root[..., :, None] * root[..., None, :]
    identity = torch.eye(energy.shape[-1], dtype=gram.dtype, device=gram.device)
    return torch.linalg.inv(gram / scale + _RIDGE * identity) / scale


def _whole(parts: Tensor, like: Tensor) -> Tensor:
    """Return numbers (..., n) of their real and imaginary parts side by side, (..., 2 n)."""
    if not like.is_complex():
        return parts
    return torch.view_as_complex(parts.unflatten(-1, (-1, 2)).contiguous())
