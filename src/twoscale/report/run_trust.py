"""How far the predictions of a run's test samples could have been trusted, sample by sample."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import betaln
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.math.measures import Compared
from twoscale.problems import DiffusionProblem
from twoscale.surrogate import Surrogate
from twoscale.trust import LEVEL, Trust, certify, is_elliptic
from twoscale.trust.band import Band, relative_to_prediction
from twoscale.trust.energy import EnergyNorm
from twoscale.trust.statistics import conformal_quantile, fewest_samples, needed_rank

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""The levels at which it is counted how often radii hold."""
_CHANCE = (0.025, 0.975)
_SCORED, _CERTIFIED = 2**22, 2**19  # nodes of the fields that get radii or bounds, at most


@dataclass(frozen=True)
class Radii:
    """Errors of samples beside the radii that they should keep.

    Errors and radii are relative to the prediction, (samples,) each. Radii are at `level`, which is
    0.95 unless there are too few calibration samples. `covered` has the share of samples within
    their radius at each of `levels`.
    """

    errors: np.ndarray
    radii: np.ndarray
    level: float
    levels: np.ndarray
    covered: np.ndarray
    calibrated: int

    @property
    def held(self) -> np.ndarray:
        """Return, of each sample, whether its error is within its radius."""
        return self.errors <= self.radii

    @property
    def chance(self) -> tuple[np.ndarray, np.ndarray]:
        """Return between which shares 95 % of experiments end, at each level.

        Of n calibration samples the radius is that of the k-th smallest ratio. If samples are
        exchangeable, the number of others that keep it is beta-binomial, with k and n + 1 - k.
        """
        samples = len(self.errors)
        kept = np.arange(samples + 1)
        chosen = -betaln(kept + 1, samples - kept + 1) - np.log(samples + 1)  # log of binomials
        ends = []
        for level in self.levels:
            rank = needed_rank(self.calibrated, float(level))
            beta = (rank, self.calibrated + 1 - rank)
            logs = chosen + betaln(kept + beta[0], samples - kept + beta[1]) - betaln(*beta)
            ends.append(np.searchsorted(np.exp(logs).cumsum(), _CHANCE).clip(max=samples))
        low, high = np.array(ends).T / samples
        return low, high


@dataclass(frozen=True)
class Proofs:
    """Relative errors in the energy norm, (samples,) each, and the bounds proven of them."""

    errors: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class TrustSamples:
    """What trust says of some test samples.

    `distances` are those of the inputs from the training inputs, relative to the limit; above 1 an
    input is outside. `radii` are None without a usable band, `proofs` without an elliptic equation.
    Of large fields both are of the first samples only.
    """

    distances: np.ndarray
    radii: Radii | None = None
    proofs: Proofs | None = None

    @property
    def outside(self) -> np.ndarray:
        """Return, of each sample, whether its input is unlike the training inputs."""
        return self.distances > 1


@torch.no_grad()
def measure_trust(surrogate: Surrogate, batches: Iterable[Compared]) -> TrustSamples | None:
    """Return what trust says of samples; None if the surrogate does not know."""
    trust = surrogate.trust_
    if trust is None:
        return None
    inputs = (one.batch.to(surrogate.device) for one in batches)
    distances = torch.cat([trust.known(one).unusual.cpu() for one in inputs])
    return TrustSamples(
        distances.double().numpy(),
        _radii(surrogate, trust, batches),
        _proofs(surrogate, batches),
    )


def _first(batches: Iterable[Compared], nodes: int) -> Iterable[Compared]:
    """Yield the first samples, of so many nodes in all and at least one."""
    left = None
    for batch in batches:
        if left is None:
            left = max(1, nodes // batch.truth[0, 0].numel())
        if left:
            some = slice(left)
            yield Compared(
                batch.prediction[some],
                batch.truth[some],
                batch.known_inputs[some],
                batch.batch[some].parameters,
            )
            left -= len(batch.truth[some])


def _radii(surrogate: Surrogate, trust: Trust, batches: Iterable[Compared]) -> Radii | None:
    """Return errors beside radii; None if no band can be used."""
    band, problem, device = trust.band, surrogate.problem, surrogate.device
    if band is None or not len(band.ratios) or not trust.scores_with(problem):
        return None
    score = trust.difficulty(surrogate.operator_, problem)
    errors, difficulties = [], []
    for batch in _first(batches, _SCORED):
        scores = score(batch.batch.to(device), batch.prediction.to(device))
        difficulties.append(band.difficulty(scores).cpu())
        errors.append(relative_to_prediction(batch.prediction, batch.truth))
    return _radii_of(band, torch.cat(errors).double(), torch.cat(difficulties).double())


def _radii_of(band: Band, errors: Tensor, difficulties: Tensor) -> Radii:
    ratios, size = band.ratios.cpu(), difficulties.numpy()
    levels = np.array([one for one in LEVELS if fewest_samples(one) <= len(ratios)])
    factors = np.array([conformal_quantile(ratios, float(one)) for one in levels])
    covered = (errors.numpy()[:, None] <= factors * size[:, None]).mean(0)
    place = int(np.flatnonzero(levels <= LEVEL)[-1])
    level, radii = float(levels[place]), factors[place] * size
    return Radii(errors.numpy(), radii, level, levels, covered, len(ratios))


def _proofs(surrogate: Surrogate, batches: Iterable[Compared]) -> Proofs | None:
    """Return true errors and proven bounds; None without an elliptic equation."""
    problem = surrogate.problem
    if not isinstance(problem, DiffusionProblem):
        return None
    if not is_elliptic(problem, surrogate.output_space_):
        return None
    found = []
    with suppress(TwoscaleError):  # a coefficient that the equation does not allow
        for batch in _first(batches, _CERTIFIED):
            given = batch.known_inputs
            proven = certify(batch.prediction, given, problem)
            norm = EnergyNorm(problem.system_of_fields(given))
            truth, prediction = (
                one[:, 0, 1:-1, 1:-1].double() for one in (batch.truth, batch.prediction)
            )
            errors = (norm(truth - prediction) / norm(truth)).numpy()
            found.append((errors, proven.relative_error_lower, proven.relative_error_upper))
    return Proofs(*map(np.concatenate, zip(*found, strict=True))) if found else None
