"""The affine map between codes, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twoscale.linalg.ridge import linear_modes, squared_errors
from twoscale.networks.dense import DenseNetwork

STRENGTH_COUNT = 40


@dataclass(frozen=True)
class CodePairs:
    """Input and output codes of the same samples, (samples, ...), in double precision."""

    inputs: Tensor
    targets: Tensor

    @classmethod
    def of(cls, inputs: Tensor, targets: Tensor) -> CodePairs:
        return cls(inputs.double(), targets.double())


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
    eigendecomposition serves the whole grid.
    """
    centre, offset = training.inputs.mean(0), training.targets.mean(0)
    directions, modes = linear_modes(training.inputs - centre, training.targets - offset)
    strengths = modes.strengths(STRENGTH_COUNT) if strength is None else [strength * modes.largest]
    probes = (validation.inputs - centre) @ directions
    truth = validation.targets - offset
    errors = squared_errors(modes, probes, truth, strengths, channels or [metric])
    chosen = strengths[int(errors.argmin())]
    weight = (directions @ modes.weights(chosen)).mT
    return AffineFit(
        weight=weight,
        bias=offset - weight @ centre,
        strength=chosen / modes.largest,
        strengths=[one / modes.largest for one in strengths],
        errors=errors,
    )
