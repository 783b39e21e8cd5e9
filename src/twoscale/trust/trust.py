"""What a surrogate knows about its own errors: the range of its inputs, and a band."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Space
from twoscale.fields.pairs import paired_chunks
from twoscale.fields.source import FieldSource
from twoscale.operators.context import FieldPairs
from twoscale.operators.operators import FieldOperator
from twoscale.problems import Problem
from twoscale.representation.base import subset
from twoscale.trust.band import NODES, Band, relative_to_prediction
from twoscale.trust.difficulty import Difficulty
from twoscale.trust.known_inputs import Familiarity, KnownInputs

Predict = Callable[[Tensor], Tensor]
_CHOICE = 256  # samples that say which inputs and nodes are difficult, at most


class Trust(nn.Module):
    """The range of the training inputs and, once calibrated, a band around predictions.

    It is stored with the surrogate. `kinds` are the names of the scores of difficulty.
    """

    def __init__(self, space: Space, kinds: Sequence[str] = ()) -> None:
        super().__init__()
        self.known = KnownInputs(space)
        self.band: Band | None = None
        self.kinds = tuple(kinds)

    @classmethod
    def of_inputs(cls, inputs: FieldSource, space: Space) -> Self:
        """Return the trust that training inputs allow: their range, and no band yet."""
        trust = cls(space)
        trust.known.fit(inputs)
        return trust

    @torch.no_grad()
    def calibrate(
        self,
        surrogate: Predictions,
        calibration: FieldPairs,
        choice: FieldPairs | None = None,
    ) -> Self:
        """Measure a surrogate's errors on pairs that took no part in its fit.

        On the pairs `choice`, which may have taken part, it is learned which samples and nodes are
        difficult. Without them no difference is made.
        """
        self.known.calibrate(calibration.inputs)
        difficulty = surrogate.difficulty(self)
        self.kinds = difficulty.kinds
        band = Band()
        few = list(_first(choice, _CHOICE)) if choice is not None else []
        if few:
            inputs, truth = (torch.cat(one) for one in zip(*few, strict=True))
            predicted = surrogate.predict(inputs)
            band.fit(difficulty(inputs, predicted), predicted, truth)
        else:
            band.make_even(len(difficulty.kinds), calibration.output_space.shape)
        parts = [
            band.ratios_of(difficulty(inputs, predicted), predicted, truth)
            for inputs, truth in paired_chunks(calibration.inputs, calibration.outputs)
            for predicted in [surrogate.predict(inputs)]
        ]
        self.band = band.to(calibration.device).calibrated(*map(torch.cat, zip(*parts, strict=True)))
        return self

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the state from tensors, named as in `state_dict`."""
        self.known.restore(subset(tensors, "known"))
        band = subset(tensors, "band")
        self.band = Band().restore(band) if band else None
        return self
