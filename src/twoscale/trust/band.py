"""Bands around predictions: radii that hold for a stated share of fresh samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self

import torch
from scipy.optimize import nnls
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.measures import over_channels, sample_errors
from twoscale.trust.conformal import check_level, conformal_quantile, fewest_samples

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
    profile: Tensor  # (channels, height, width): usual error of each node
    node_ratios: Tensor  # (samples,): the same of nodes, at their quantile `NODES`

    def __init__(self) -> None:
        super().__init__()
        for name in Band.__annotations__:
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))

    def fit(self, scores: Tensor, prediction: Tensor, truth: Tensor) -> Self:
        """Learn from scores (samples, kinds) and fields which samples and nodes are difficult."""
        errors = relative_to_prediction(prediction, truth)
        self.powers = fitted_powers(scores, errors)
        deviations = self._deviations(scores, prediction, truth)
        profile = deviations.square().nanmean(0).sqrt()
        least = _STEADIEST * profile.mean((1, 2), keepdim=True)
        self.profile = profile.maximum(least).clamp_min(torch.finfo(torch.float32).tiny).float()
        return self

    def calibrate(self, scores: Tensor, prediction: Tensor, truth: Tensor) -> Self:
        """Measure errors on samples that took no part in the fit; the widths follow from them."""
        errors = relative_to_prediction(prediction, truth)
        self.ratios = (errors / self.difficulty(scores)).nan_to_num(torch.inf)
        nodes = (self._deviations(scores, prediction, truth) / self.profile).flatten(1)
        self.node_ratios = nodes.quantile(NODES, dim=1).nan_to_num(torch.inf)
        return self

    def difficulty(self, scores: Tensor) -> Tensor:
        """Return the difficulties (samples,) of scores (samples, kinds)."""
        return (positive(scores).log() @ self.powers.to(scores.device)).exp()

    def radius(self, scores: Tensor, level: float) -> Tensor:
        """Return the radius of each sample's relative error."""
        return self._quantile(self.ratios, level) * self.difficulty(scores)

    def half_width(self, scores: Tensor, prediction: Tensor, level: float) -> Tensor:
        """Return how far the truth is from the prediction at most, at `NODES` of the nodes."""
        size = self._quantile(self.node_ratios, level) * self.difficulty(scores)
        widths = size[:, None, None, None] * self.profile * _sizes(prediction)
        return widths.to(prediction.dtype)

    def _quantile(self, ratios: Tensor, level: float) -> float:
        found = conformal_quantile(ratios, check_level(level))
        if math.isinf(found) and len(ratios) < fewest_samples(level):
            raise TwoscaleError(
                f"level {level:g} needs {fewest_samples(level)} calibration samples at least, and "
                f"there are {len(ratios)}: ask for a lower level, or calibrate with more"
            )
        return found

    def _deviations(self, scores: Tensor, prediction: Tensor, truth: Tensor) -> Tensor:
        """Return the errors of nodes in units of the prediction's size and the difficulty."""
        found = (prediction.double() - truth.double()).abs() / _sizes(prediction)
        return found / self.difficulty(scores)[:, None, None, None]

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the state from tensors, named as in `state_dict`."""
        if sorted(tensors) != sorted(Band.__annotations__):
            raise TwoscaleError("the calibration is incomplete: the artifact is damaged")
        for name, value in tensors.items():
            self.register_buffer(name, value)
        return self


def relative_to_prediction(prediction: Tensor, truth: Tensor) -> Tensor:
    """Return the error of each sample beside the size of its prediction, (samples,)."""
    return over_channels(sample_errors(truth, prediction))


def fitted_powers(scores: Tensor, errors: Tensor) -> Tensor:
    """Return powers p >= 0 with which log(error) is near p . log(scores), up to a constant.

    Few samples say nothing: then the first score counts as it is.
    """
    sound = (errors > 0) & errors.isfinite()
    seen, wanted = positive(scores)[sound].log(), errors[sound].log()
    powers = torch.zeros(scores.shape[1], dtype=torch.float64, device=scores.device)
    if len(wanted) < _FEWEST:
        powers[:1] = 1.0
        return powers
    seen, wanted = seen - seen.mean(0), wanted - wanted.mean()
    found, _ = nnls(seen.cpu().numpy(), wanted.cpu().numpy())
    return torch.from_numpy(found).to(powers)


def positive(scores: Tensor) -> Tensor:
    """Return scores of which logarithms can be taken, in float64."""
    return scores.double().clamp(1e-30, 1e30)


def _sizes(fields: Tensor) -> Tensor:
    """Return the root mean square of each sample's channels, (samples, channels, 1, 1)."""
    return fields.double().square().mean((2, 3), keepdim=True).sqrt()
