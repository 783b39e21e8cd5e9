"""How far the predictions of a run's test samples could have been trusted, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import betaln
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.math.measures import Batch
from twoscale.problems import DiffusionProblem
from twoscale.surrogate import Surrogate
from twoscale.trust import LEVEL, certify, is_elliptic
from twoscale.trust.band import Band, relative_to_prediction
from twoscale.trust.conformal import conformal_quantile, fewest_samples, needed_rank
from twoscale.trust.energy import EnergyNorm

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
        """Return between which shares 95 % of experiments end, at each level."""
        ends = [_chance(len(self.errors), self.calibrated, float(one)) for one in self.levels]
        low, high = np.array(ends).T
        return low, high


def _chance(samples: int, calibrated: int, level: float) -> tuple[float, float]:
    """Return the 2.5 % and 97.5 % quantiles of the share of samples within their radius.

    Of n calibration samples the radius is that of the k-th smallest ratio. If samples are
    exchangeable, the number of others that keep it is beta-binomial, with k and n + 1 - k.
    """
    rank = needed_rank(calibrated, level)
    kept, beta = np.arange(samples + 1), (rank, calibrated + 1 - rank)
    chosen = -betaln(kept + 1, samples - kept + 1) - np.log(samples + 1)  # log of binomials
    below = np.exp(chosen + betaln(kept + beta[0], samples - kept + beta[1]) - betaln(*beta))
    low, high = np.searchsorted(below.cumsum(), _CHANCE)
    return low / samples, min(high, samples) / samples


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


class TrustLook:
    """Collects what trust says of samples, a part of them after the other."""

    def __init__(self, surrogate: Surrogate) -> None:
        assert surrogate.trust_ is not None
        self._surrogate, self._trust = surrogate, surrogate.trust_
        problem, space = surrogate.problem, surrogate.output_space_
        band = self._trust.band
        usable = band is not None and len(band.ratios) and self._trust.scores_with(problem)
        self._band = band if usable else None
        self._difficulty = self._trust.difficulty(surrogate.operator_, problem) if usable else None
        self._to_score = max(1, _SCORED // space.grid.nodes)
        self._to_certify = 0
        if isinstance(problem, DiffusionProblem) and is_elliptic(problem, space):
            self._equation = problem
            self._to_certify = max(1, _CERTIFIED // space.grid.nodes)
        self._distances: list[Tensor] = []
        self._errors: list[Tensor] = []
        self._difficulties: list[Tensor] = []
        self._proofs: list[tuple[np.ndarray, ...]] = []

    @torch.no_grad()
    def add(self, batch: Batch) -> None:
        """Look at some inputs with their predictions and true fields."""
        device = self._surrogate.device
        inputs, predicted = batch.known_inputs, batch.prediction
        self._distances.append(self._trust.known(inputs.to(device)).unusual.cpu())
        some = slice(self._to_score)
        if self._band is not None and self._difficulty is not None and self._to_score:
            self._to_score -= len(inputs[some])
            scores = self._difficulty(inputs[some].to(device), predicted[some].to(device))
            self._difficulties.append(self._band.difficulty(scores).cpu())
            self._errors.append(relative_to_prediction(predicted[some], batch.truth[some]))
        if self._to_certify:
            fields = (inputs, predicted, batch.truth)
            self._certify(*(one[: self._to_certify] for one in fields))

    def _certify(self, inputs: Tensor, predicted: Tensor, truth: Tensor) -> None:
        self._to_certify -= len(inputs)
        given = inputs[:, : self._equation.channels[0]]  # parameters are no part of an equation
        try:
            proven = certify(predicted, given, self._equation)
        except TwoscaleError:  # a coefficient that the equation does not allow
            self._to_certify = 0
            return
        norm = EnergyNorm(self._equation.system_of_fields(given))
        wanted, found = (one[:, 0, 1:-1, 1:-1].double() for one in (truth, predicted))
        errors = (norm(wanted - found) / norm(wanted)).numpy()
        self._proofs.append((errors, proven.relative_error_lower, proven.relative_error_upper))

    def result(self) -> TrustSamples:
        proofs = [np.concatenate(one) for one in zip(*self._proofs, strict=True)]
        return TrustSamples(
            torch.cat(self._distances).double().numpy(),
            None if self._band is None else self._radii(self._band),
            Proofs(*proofs) if proofs else None,
        )

    def _radii(self, band: Band) -> Radii:
        errors, difficulties = (
            torch.cat(one).double().numpy() for one in (self._errors, self._difficulties)
        )
        ratios = band.ratios.cpu()
        levels = np.array([one for one in LEVELS if fewest_samples(one) <= len(ratios)])
        factors = np.array([conformal_quantile(ratios, float(one)) for one in levels])
        within = errors[:, None] <= factors * difficulties[:, None]
        place = int(np.flatnonzero(levels <= LEVEL)[-1])
        return Radii(
            errors,
            factors[place] * difficulties,
            float(levels[place]),
            levels,
            within.mean(0),
            len(ratios),
        )
