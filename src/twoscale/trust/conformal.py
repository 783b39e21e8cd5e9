"""The quantile of conformal prediction."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from torch import Tensor

from twoscale.errors import TwoscaleError

_LOWEST = 0.9  # level that is worth setting samples apart for


def conformal_quantile(scores: Tensor, level: float) -> float:
    """Return the bound that the score of a fresh sample keeps with probability `level` at least.

    This is the smallest score that ceil((n + 1) level) of the n scores do not exceed. It holds
    for any distribution, if the samples are exchangeable. Infinite if n is too small for it.

    >>> import torch
    >>> conformal_quantile(torch.arange(1.0, 20.0), 0.95)
    19.0
    """
    rank = needed_rank(len(scores), level)
    return float(scores.sort().values[rank - 1]) if rank <= len(scores) else math.inf


def needed_rank(samples: int, level: float) -> int:
    """Return the place of the quantile among sorted scores, from 1."""
    return math.ceil(round((samples + 1) * level, 9))


def fewest_samples(level: float) -> int:
    """Return how many scores are needed for a level.

    >>> fewest_samples(0.95), fewest_samples(0.99)
    (19, 99)
    """
    return math.ceil(round(level / (1 - level), 9))


def set_apart(held_out: int) -> int:
    """Return how many of the samples that are held out are for calibration: half of them.

    With fewer than 9 not even a level of 90 % is possible: then there are none.

    >>> set_apart(100), set_apart(17)
    (50, 0)
    """
    half = held_out // 2
    return half if half >= fewest_samples(_LOWEST) else 0


def check_level(level: Any) -> float:
    """Return a level, or raise if it is not a number between 0 and 1."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0 < float(level) < 1:
        raise TwoscaleError(f"the level is a number between 0 and 1, such as 0.95, got {level!r}")
    return float(level)
