"""Ridge regression for every strength at once: one eigendecomposition, then products."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    modes: Modes,
    probes: Tensor,
    truth: Tensor,
    strengths: list[float],
    metrics: Sequence[Tensor],
) -> Tensor:
    """Return the squared error (strengths,) on held-out samples, for each strength.

    `probes` (samples, modes) are the samples seen by the modes and `truth` (samples, outputs) what
    they should become. With each of the `metrics` an error e counts as ||e @ metric||^2; see
    `geometric_mean`.
    """
    return squared_errors_of_parts(modes, [(probes, truth)], strengths, metrics)


def squared_errors_of_parts(
    modes: Modes,
    parts: Iterable[tuple[Tensor, Tensor]],
    strengths: list[float],
    metrics: Sequence[Tensor],
) -> Tensor:
    """Return what `squared_errors` does, of samples that come as parts (probes, truth)."""
    seen = [Modes(modes.values, modes.coefficients @ metric) for metric in metrics]
    totals: list[Tensor] = []
    for probes, truth in parts:
        own = []
        for one, metric in zip(seen, metrics, strict=True):
            wanted = truth @ metric
            errors = [(probes @ one.weights(s) - wanted).square().sum() for s in strengths]
            own.append(torch.stack(errors))
        totals = [a + b for a, b in zip(totals, own, strict=True)] if totals else own
    return geometric_mean(totals)


def geometric_mean(errors: Sequence[Tensor]) -> Tensor:
    """Return the geometric mean of errors of several kinds, such as those of channels.

    Whatever is chosen by it, no kind is sacrificed for a smaller share of another.
    """
    if len(errors) == 1:
        return errors[0]
    tiny = torch.finfo(errors[0].dtype).tiny
    return torch.stack(list(errors)).clamp_min(tiny).log().mean(0).exp()


def linear_modes(inputs: Tensor, targets: Tensor) -> tuple[Tensor, Modes]:
    """Return the directions (features, modes) and modes of the ridge regression on `inputs`.

    The weights with strength s are `directions @ modes.weights(s)`: those that minimise
    ||targets - inputs W||^2 + s ||W||^2. Both arguments (samples, ...) are centred. The smaller
    Gram matrix is decomposed, that of the features or that of the samples.
    """
    samples, features = inputs.shape
    if features <= samples:
        return linear_modes_of_parts([(inputs, targets)])
    values, basis = torch.linalg.eigh(inputs @ inputs.mT)
    return inputs.mT @ basis, Modes(values.clamp_min(0), basis.mT @ targets)


def linear_modes_of_parts(parts: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Modes]:
    """Return what `linear_modes` does, of no fewer samples than features that come as parts.

    Each part is (inputs, targets), centred. Only the sums of their products are kept.
    """
    products = ((inputs.mT @ inputs, inputs.mT @ targets) for inputs, targets in parts)
    gram, cross = next(products)
    for one, other in products:
        gram, cross = gram.add_(one), cross.add_(other)
    values, directions = torch.linalg.eigh(gram)
    return directions, Modes(values.clamp_min(0), directions.mT @ cross)
