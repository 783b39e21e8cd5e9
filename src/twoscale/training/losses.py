"""Losses on codes: weightings of the squared code errors, and the relative error of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from twoscale.errors import unknown_name

Loss = Callable[[Tensor, Tensor], Tensor]

_VARIANCE_FLOOR = 1e-8
_SMALLEST = 1e-12  # norm of a field, in the decoder's unit


def code_weights(objective: str, block_sizes: Sequence[int], variance: Tensor) -> Tensor:
    """Return the weight (code_size,) of each code coordinate's mean squared error.

    `block_sizes` are the code sizes of the representation's stages, `variance` (code_size,) the
    variance of the training codes.

    - vector: plain mean over all coordinates;
    - block-balanced: mean within each stage, then the mean over stages (1/2 + 1/2 for two);
    - score-normalised: block-balanced after dividing squared errors by the code variance;
    - field: plain mean as well, but over coordinates in which it is that of the decoded field.
    """
    if objective not in OBJECTIVES:
        raise unknown_name("objective", objective, OBJECTIVES)
    size = sum(block_sizes)
    if objective in ("vector", "field"):
        return torch.full_like(variance, 1.0 / size)
    balanced = torch.cat(
        [variance.new_full((k,), 1.0 / (len(block_sizes) * k)) for k in block_sizes]
    )
    if objective == "block-balanced":
        return balanced
    return balanced / variance.clamp_min(_VARIANCE_FLOOR)


OBJECTIVES = ("vector", "block-balanced", "score-normalised", "field")


class RelativeLoss:
    """The mean over a batch of ||predicted field - true field|| / ||true field||.

    A true field of zeros adds nothing.
    `metric` turns code errors into coordinates with the fields' distances: a matrix (code,
    coordinates), or a factor for each code. The last column of `true` holds the norms of the true
    fields, the others their codes.
    """

    def __init__(self, metric: Tensor) -> None:
        self.metric = metric

    def __call__(self, predicted: Tensor, true: Tensor) -> Tensor:
        error = predicted - true[:, :-1]
        error = error @ self.metric if self.metric.ndim == 2 else error * self.metric
        sizes = true[:, -1]
        errors = error.norm(dim=1) / sizes.clamp_min(_SMALLEST)
        return torch.where(sizes > _SMALLEST, errors, 0.0).mean()


class CodeLoss:
    """The loss sum_i w_i mean_batch (predicted_i - true_i)^2."""

    def __init__(self, weights: Tensor) -> None:
        self.weights = weights

    def __call__(self, predicted: Tensor, true: Tensor) -> Tensor:
        return (predicted - true).square().mean(0) @ self.weights


def mean_square(predicted: Tensor, true: Tensor) -> Tensor:
    """Return the mean squared error over all values of a batch."""
    return (predicted - true).square().mean()
