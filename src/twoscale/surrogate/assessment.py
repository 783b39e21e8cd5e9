"""Predictions with how far each of them can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.fields.source import slices
from twoscale.runtime.progress import Progress
from twoscale.trust import NODES, Trust


@dataclass(frozen=True)
class Assessment:
    """Predicted fields, and how far each of them can be trusted.

    Attributes
    ----------
    fields
        The predictions, as `predict` returns them.
    radius
        Of each sample, a bound of ||prediction - truth|| / ||prediction||. It holds for a share
        `level` of fresh inputs of the training's kind. Of several channels it bounds the root mean
        square of theirs.
    lower, upper
        A band around the fields. For the same share of inputs, the truth is inside at 95 % of the
        nodes (`nodes`) or more.
    outside
        Of each sample, whether its input is unlike the training inputs. Radius and band do not
        hold then.
    unusual
        Of each sample, how far its input is from the training inputs. Above 1 it is outside.
    reasons
        Of each sample and channel, distances of three kinds ("roughness", "code", "values"), and
        the part of the input that its code misses ("missed").
    level, nodes
        The share of inputs, and the share of nodes.
    certificate
        Proven bounds of the errors, if the equation is known and elliptic; else None.

    Examples
    --------
    >>> import numpy as np
    >>> from twoscale import Surrogate
    >>> x = np.random.default_rng(0).standard_normal((400, 8, 8)).cumsum(axis=1)
    >>> surrogate = Surrogate(predictor="affine").fit(x, x.cumsum(axis=2))
    >>> found = surrogate.assess(x[:3], level=0.9)
    >>> found.radius.shape, found.outside.tolist()
    ((3,), [False, False, False])
    """

    fields: Any
    radius: np.ndarray
    lower: Any
    upper: Any
    outside: np.ndarray
    unusual: np.ndarray
    reasons: dict[str, np.ndarray]
    level: float
    nodes: float = NODES
    certificate: Any = None

    def handed_back(self, result: Callable[[Tensor], Any]) -> Assessment:
        """Return the same with fields as the user's kind of array."""
        fields, lower, upper = (result(one) for one in (self.fields, self.lower, self.upper))
        return replace(self, fields=fields, lower=lower, upper=upper)


@torch.no_grad()
def assessed(
    surrogate: Any,
    trust: Trust,
    fields: Tensor,
    *,
    level: float,
    length: int,
    progress: Progress | None = None,
) -> Assessment:
    """Return the predictions of checked inputs (b, C, H, W), with how far they can be trusted.

    `length` samples are assessed at a time.
    """
    band = trust.calibrated()
    difficulty = trust.difficulty(surrogate.operator_, surrogate.problem)
    parts: list[tuple[Tensor, ...]] = []
    for part in slices(len(fields), length):
        inputs = fields[part].to(surrogate.device)
        predicted = surrogate.predict_fields(inputs)
        scores = difficulty(inputs, predicted)
        width = band.half_width(scores, predicted, level)
        made = (predicted, predicted - width, predicted + width, band.radius(scores, level))
        parts.append((*made, *vars(trust.known(inputs)).values()))
        if progress:
            progress("fields", part.stop, len(fields), "")
    joined = [torch.cat(one).to(fields.device) for one in zip(*parts, strict=True)]
    (predicted, lower, upper, radius), reasons = joined[:4], joined[4:]
    names = ("roughness", "code", "values", "missed")
    by_name = dict(zip(names, (one.cpu().numpy() for one in reasons), strict=True))
    unusual = np.stack([by_name[name] for name in names[:3]]).max(axis=(0, 2))
    return Assessment(
        predicted,
        radius.cpu().numpy(),
        lower,
        upper,
        unusual > 1,
        unusual,
        by_name,
        level,
    )
