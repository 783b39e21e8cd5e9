"""Bands around predictions: radii that hold for a stated share of fresh samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Self

import torch
from scipy.optimize import nnls
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.math.measures import over_channels, sample_errors
from twoscale.trust.statistics import (
    check_level,
    conformal_quantile,
    fewest_samples,
    restore_buffers,
)

Ratios = tuple[Tensor, ...]
"""Errors of samples and of nodes, both divided by difficulty, (samples,) each."""

NODES = 0.95
"""The share of nodes that a pointwise band covers."""
_FEWEST = 20  # samples from which on the powers of scores are fitted
_STEADIEST = 1e-3  # the least width of a band at a node, beside its mean width


class Band(nn.Module):
    """How wrong predictions are, calibrated on samples that took no part in the fit.

    The error of a sample is ||prediction - truth|| / ||prediction||. Its difficulty is a product of
    powers of scores that are known without the truth. Powers are fitted on samples that may have
    taken part in the choice of weights. Radii are quantiles of error / difficulty on other samples
    (split conformal prediction), so that they hold whatever the scores are worth.
    """

    powers: Tensor  # (scores,)
    ratios: Tensor  # (samples,): error / difficulty
    profile: Tensor  # (channels, *shape): usual error of each node
    node_ratios: Tensor  # (samples,): the same of nodes, at their quantile `NODES`

    def __init__(self) -> None:
        super().__init__()
        for name in Band.__annotations__:
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))

    def fit(
        self, scores: Tensor, prediction: Tensor, truth: Tensor, usual: Sequence[float]
    ) -> Self:
        """Learn from scores (samples, kinds) and fields which samples and nodes are difficult.

        Few samples say nothing: the powers are then the `usual` ones, and all nodes are alike.
        """
        self.powers = torch.tensor(usual, dtype=torch.float64, device=prediction.device)
        self.profile = torch.ones(prediction.shape[1:], device=prediction.device)
        if len(prediction) < _FEWEST:
            return self
        self.powers = fitted_powers(scores, relative_to_prediction(prediction, truth))
        found = self._deviations(scores, prediction, truth)
        told = found.isfinite().flatten(1).all(1)  # of a prediction of zeros there is no size
        usual_errors = found[told].square().mean(0).sqrt()
        axes = tuple(range(1, usual_errors.ndim))
        least = (_STEADIEST * usual_errors.mean(axes, keepdim=True)).nan_to_num(1.0)
        profile = usual_errors.nan_to_num(1.0).maximum(least).float()
        self.profile = profile.clamp_min(torch.finfo(torch.float32).tiny)
        return self

    def ratios_of(self, scores: Tensor, prediction: Tensor, truth: Tensor) -> Ratios:
        """Return error / difficulty of samples, and the same of nodes at their quantile `NODES`."""
        errors = ratio(relative_to_prediction(prediction, truth), self.difficulty(scores))
        nodes = ratio(self._deviations(scores, prediction, truth), self.profile).flatten(1)
        widest = nodes.kthvalue(math.ceil(NODES * nodes.shape[1]), dim=1).values
        return errors, widest

    def calibrate(self, parts: Sequence[Ratios]) -> Self:
        """Take the ratios of samples that took no part in the fit; all widths follow from them."""
        self.ratios, self.node_ratios = (torch.cat(one) for one in zip(*parts, strict=True))
        return self

    def difficulty(self, scores: Tensor) -> Tensor:
        """Return the difficulties (samples,) of scores (samples, kinds)."""
        return (positive(scores).log() @ self.powers.to(scores.device)).exp()

    def radius(self, scores: Tensor, level: float) -> Tensor:
        """Return the radius of each sample's relative error; infinite if nothing is known of it."""
        return _never_nan(self._quantile(self.ratios, level) * self.difficulty(scores))

    def half_width(self, scores: Tensor, prediction: Tensor, level: float) -> Tensor:
        """Return how far the truth is from the prediction at most, at `NODES` of the nodes."""
        size = self._quantile(self.node_ratios, level) * self.difficulty(scores)
        widths = _never_nan(_each(size, prediction) * self.profile * _sizes(prediction))
        return widths.to(prediction.dtype)

    def check_level(self, level: float) -> None:
        """Raise if there are no widths for a level."""
        if len(self.ratios) < fewest_samples(check_level(level)):
            raise TwoscaleError(
                f"level {level:g} needs {fewest_samples(level)} calibration samples at least, and "
                f"there are {len(self.ratios)}: ask for a lower level, or calibrate with more"
            )

    def _quantile(self, ratios: Tensor, level: float) -> float:
        self.check_level(level)
        return conformal_quantile(ratios, level)

    def _deviations(self, scores: Tensor, prediction: Tensor, truth: Tensor) -> Tensor:
        """Return the errors of nodes in units of the prediction's size and the difficulty."""
        found = ratio((prediction.double() - truth.double()).abs(), _sizes(prediction))
        return ratio(found, _each(self.difficulty(scores), found))

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the state from tensors, named as in `state_dict`."""
        return restore_buffers(self, tensors)


def relative_to_prediction(prediction: Tensor, truth: Tensor) -> Tensor:
    """Return the error of each sample beside the size of its prediction, (samples,).

    A channel that is predicted to be zero, and is, does not count. If it is not zero, the error is
    infinite. A sample all of whose channels do not count has no error.
    """
    wrong = (prediction != truth).flatten(2).any(2)
    errors = sample_errors(truth, prediction)
    errors = errors.masked_fill(errors.isnan() & wrong, torch.inf)
    return over_channels(errors).nan_to_num(0.0, torch.inf)


def fitted_powers(scores: Tensor, errors: Tensor) -> Tensor:
    """Return powers p >= 0 with which log(error) is near p . log(scores), up to a constant."""
    sound = (errors > 0) & errors.isfinite()
    if not bool(sound.any()):
        return scores.new_zeros(scores.shape[1], dtype=torch.float64)
    seen, wanted = positive(scores)[sound].log(), errors[sound].log()
    seen, wanted = seen - seen.mean(0), wanted - wanted.mean()
    found, _ = nnls(seen.cpu().numpy(), wanted.cpu().numpy())
    return torch.from_numpy(found).to(scores.device)


def ratio(value: Tensor, size: Tensor) -> Tensor:
    """Return value / size of numbers that are not negative: 0 / 0 is 0, and NaN is infinite.

    >>> ratio(torch.tensor([0.0, 1.0, 1.0]), torch.tensor([0.0, 0.0, 2.0])).tolist()
    [0.0, inf, 0.5]
    """
    return _never_nan((value / size).masked_fill(value == 0, 0.0))


def _never_nan(values: Tensor) -> Tensor:
    return values.masked_fill(values.isnan(), torch.inf)


def positive(scores: Tensor) -> Tensor:
    """Return scores of which logarithms can be taken, in float64."""
    return scores.double().clamp(1e-30, 1e30)


def _sizes(fields: Tensor) -> Tensor:
    """Return the root mean square of each sample's channels, (samples, channels, 1, ...)."""
    axes = tuple(range(2, fields.ndim))
    return fields.double().square().mean(axes, keepdim=True).sqrt()


def _each(values: Tensor, fields: Tensor) -> Tensor:
    """Return numbers (samples,) as factors of fields."""
    return values.reshape(-1, *[1] * (fields.ndim - 1))
