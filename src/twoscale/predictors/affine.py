"""The affine map between codes, in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from twoscale.math.ridge import (
    Modes,
    linear_modes,
    linear_modes_of_parts,
    squared_errors_of_parts,
)
from twoscale.networks.dense import DenseNetwork
from twoscale.predictors.cost import EIGEN, Sizes
from twoscale.training import CodePairs

STRENGTH_COUNT = 40


def affine_work(sizes: Sizes) -> float:
    """Return the multiplications of a fit, for a search."""
    fields = sizes.images * sizes.samples
    smaller = min(fields, sizes.input_code)
    products = 2.0 * fields * sizes.input_code * (smaller + sizes.output_code)
    judging = 2.0 * STRENGTH_COUNT * sizes.validation * smaller * sizes.output_code
    return products + judging + EIGEN * smaller**3


@dataclass(frozen=True)
class AffineFit:
    """z = weight x + bias, with the strengths that were tried and their errors."""

    weight: Tensor  # (outputs, inputs), float64
    bias: Tensor  # (outputs,)
    strength: float  # relative to the largest eigenvalue of the inputs' Gram matrix
    strengths: list[float]  # all that were tried, relative as well
    errors: Tensor  # (strengths,): squared errors on the validation codes

    def network(self) -> DenseNetwork:
        """Return the map as a network without hidden layers, in single precision."""
        outputs, inputs = self.weight.shape
        network = DenseNetwork((inputs, outputs)).to(self.weight.device)
        (layer,) = network.linear
        with torch.no_grad():
            layer.weight.copy_(self.weight)
            layer.bias.copy_(self.bias)
        return network

    def importance(self, metric: Tensor) -> Tensor:
        """Return the norm, in the metric, of the change per unit of each input (inputs,)."""
        return (metric.mT @ self.weight).norm(dim=0)


def fit_affine(
    training: CodePairs,
    validation: CodePairs,
    metric: Tensor,
    *,
    channels: Sequence[Tensor] = (),
    strength: float | None = None,
) -> AffineFit:
    """Return the ridge regression with an intercept, the same strength for all outputs.

    Without `strength` the best of a grid on the validation codes is taken. The error of a code is
    ||e @ metric||^2; with the metrics of several `channels` it is the geometric mean of theirs. One
    eigendecomposition serves the whole grid. Codes on disk are read part by part, twice.
    """
    training, validation = _converted(training), _converted(validation)
    centre, offset = _means(training)
    directions, modes = _modes(training, centre, offset)
    strengths = modes.strengths(STRENGTH_COUNT) if strength is None else [strength * modes.largest]
    held_out = (
        ((part.inputs - centre) @ directions, part.targets - offset) for part in _parts(validation)
    )
    errors = squared_errors_of_parts(modes, held_out, strengths, channels or [metric])
    chosen = strengths[int(errors.argmin())]
    weight = (directions @ modes.weights(chosen)).mT
    return AffineFit(
        weight=weight,
        bias=offset - weight @ centre,
        strength=chosen / modes.largest,
        strengths=[one / modes.largest for one in strengths],
        errors=errors,
    )


def _converted(pairs: CodePairs) -> CodePairs:
    """Return codes in double precision if they are in memory, and as they are if on disk."""
    return pairs if len(list(pairs.parts())) > 1 else pairs.double()


def _parts(pairs: CodePairs) -> Iterator[CodePairs]:
    """Yield codes in double precision, those on disk part by part."""
    for part in pairs.parts():
        yield CodePairs(pairs.inputs[part], pairs.targets[part]).double()


def _means(pairs: CodePairs) -> tuple[Tensor, Tensor]:
    means = [
        [len(part) / len(pairs) * codes.mean(0) for codes in (part.inputs, part.targets)]
        for part in _parts(pairs)
    ]
    inputs, targets = (reduce(torch.add, side) for side in zip(*means, strict=True))
    return inputs, targets


def _modes(pairs: CodePairs, centre: Tensor, offset: Tensor) -> tuple[Tensor, Modes]:
    """Return the modes of centred codes; those longer than there are samples are read at once."""
    centred = ((part.inputs - centre, part.targets - offset) for part in _parts(pairs))
    samples, features = pairs.inputs.shape
    if features <= samples:
        return linear_modes_of_parts(centred)
    inputs, targets = zip(*centred, strict=True)
    return linear_modes(torch.cat(inputs), torch.cat(targets))
