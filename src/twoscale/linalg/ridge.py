"""Ridge regression for every strength at once: one eigendecomposition, then products."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_WEAKEST = 1e-13  # of the largest eigenvalue; codes are single precision, their squares 1e-14
_NOTHING = 0.1 * _WEAKEST  # what is no larger is rounding; every strength above keeps all modes


@dataclass(frozen=True)
class Modes:
    """A regularised regression, split into modes that do not know of each other.

    With strength s mode i has the weights `coefficients[i] / (values[i] + s)`; or none, if that
    would divide by what is nothing beside the largest value, as in a pseudo-inverse.
    """

    values: Tensor  # (modes,), not negative
    coefficients: Tensor  # (modes, outputs)

    def weights(self, strength: float) -> Tensor:
        """Return the weights (modes, outputs) with this strength."""
        damped = self.values + strength
        nothing = damped <= _NOTHING * self.values.max()
        return self.coefficients / damped.masked_fill(nothing, torch.inf)[:, None]

    @property
    def largest(self) -> float:
        return float(self.values.max()) or 1.0

    def strengths(self, count: int) -> list[float]:
        """Return a logarithmic grid of strengths, from next to nothing to the largest value."""
        weakest = torch.tensor(_WEAKEST, dtype=torch.float64).log10()
        grid = torch.logspace(float(weakest), 0.0, count, dtype=torch.float64)
        return (self.largest * grid).tolist()


def squared_errors(
    modes: Modes, probes: Tensor, truth: Tensor, strengths: list[float], metric: Tensor
) -> Tensor:
    """Return the sum of squared errors (strengths,) on held-out samples, for each strength.

    `probes` (samples, modes) are the samples seen by the modes and `truth` (samples, outputs) what
    they should become; an error e counts as ||e @ metric||^2.
    """
    seen = Modes(modes.values, modes.coefficients @ metric)
    wanted = truth @ metric
    errors = [(probes @ seen.weights(one) - wanted).square().sum() for one in strengths]
    return torch.stack(errors)


def linear_modes(inputs: Tensor, targets: Tensor) -> tuple[Tensor, Modes]:
    """Return the directions (features, modes) and modes of the ridge regression on `inputs`.

    The weights with strength s are `directions @ modes.weights(s)`: those that minimise
    ||targets - inputs W||^2 + s ||W||^2. Both arguments (samples, ...) are centred. The smaller
    Gram matrix is decomposed, that of the features or that of the samples.
    """
    samples, features = inputs.shape
    if features <= samples:
        values, directions = torch.linalg.eigh(inputs.mT @ inputs)
        return directions, Modes(values.clamp_min(0), directions.mT @ (inputs.mT @ targets))
    values, basis = torch.linalg.eigh(inputs @ inputs.mT)
    return inputs.mT @ basis, Modes(values.clamp_min(0), basis.mT @ targets)
