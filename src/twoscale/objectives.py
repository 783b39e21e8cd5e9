"""Latent objectives: each is a weighting of the squared code errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError

Loss = Callable[[Tensor, Tensor], Tensor]

_VARIANCE_FLOOR = 1e-8


def code_weights(objective: str, block_sizes: Sequence[int], variance: Tensor) -> Tensor:
    """Return the weight (code_size,) of each code coordinate's mean squared error.

    `block_sizes` are the code sizes of the representation's stages, `variance` (code_size,) the
    variance of the training codes.

    - vector: plain mean over all coordinates;
    - block-balanced: mean within each stage, then the mean over stages (1/2 + 1/2 for two);
    - score-normalised: block-balanced after dividing squared errors by the code variance.
    """
    if objective not in OBJECTIVES:
        raise TwoscaleError(
            f"no objective is called '{objective}': known are {', '.join(OBJECTIVES)}"
        )
    size = sum(block_sizes)
    if objective == "vector":
        return torch.full_like(variance, 1.0 / size)
    balanced = torch.cat(
        [variance.new_full((k,), 1.0 / (len(block_sizes) * k)) for k in block_sizes]
    )
    if objective == "block-balanced":
        return balanced
    return balanced / variance.clamp_min(_VARIANCE_FLOOR)


OBJECTIVES = ("vector", "block-balanced", "score-normalised")


class CodeLoss:
    """The loss sum_i w_i mean_batch (predicted_i - true_i)^2."""

    def __init__(self, weights: Tensor) -> None:
        self.weights = weights

    def __call__(self, predicted: Tensor, true: Tensor) -> Tensor:
        return (predicted - true).square().mean(0) @ self.weights
