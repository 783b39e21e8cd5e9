"""How often radii and bands hold on pairs with known truth."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from twoscale.fields.source import Batch
from twoscale.operators.operators import FieldOperator
from twoscale.problems import Problem
from twoscale.trust.band import NODES, relative_to_prediction
from twoscale.trust.statistics import fewest_samples
from twoscale.trust.trust import Trust

LEVEL = 0.95
"""The share of samples that radii are to hold for, if no other is asked for."""


class Coverage:
    """Counts, while batches of an evaluation pass, how often a band holds and inputs are outside.

    Only the latter is counted without a band, or with one of too few calibration samples, or of
    another equation. `calibration_samples` tells these apart.
    """

    def __init__(self, trust: Trust, operator: FieldOperator, problem: Problem | None) -> None:
        self._trust, self._band = trust, trust.band
        if self._band is not None and (
            len(self._band.ratios) < fewest_samples(LEVEL) or not trust.scores_with(problem)
        ):
            self._band = None
        self._difficulty = None if self._band is None else trust.difficulty(operator, problem)
        self._parts: list[Tensor] = []

    @torch.no_grad()
    def observe(self, inputs: Batch, predicted: Tensor, truth: Tensor) -> None:
        """Count a batch of inputs, predictions and true fields."""
        columns = [self._trust.known(inputs).outside.double()]
        if self._band is not None and self._difficulty is not None:
            scores = self._difficulty(inputs, predicted)
            radius = self._band.radius(scores, LEVEL)
            width = self._band.half_width(scores, predicted, LEVEL)
            inside = ((predicted - truth).abs() <= width).flatten(1).double().mean(1)
            held = relative_to_prediction(predicted, truth) <= radius
            columns += [held.double(), radius, (inside >= NODES).double()]
        self._parts.append(torch.stack([one.cpu() for one in columns], 1))

    @property
    def metrics(self) -> dict[str, Any]:
        """Return shares and means over all samples."""
        outside, *rest = torch.cat(self._parts).mean(0).tolist()
        calibrated = 0 if self._trust.band is None else len(self._trust.band.ratios)
        found: dict[str, Any] = {"outside": outside, "level": LEVEL}
        found["calibration_samples"] = calibrated
        if self._band is not None:
            coverage, radius, nodes = rest
            found |= {
                "coverage": coverage,
                "mean_radius": radius,
                "nodes": NODES,
                "band_coverage": nodes,
                "scores": list(self._trust.kinds),
            }
        return found
