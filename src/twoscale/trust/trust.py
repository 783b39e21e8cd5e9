"""What a surrogate knows about its own errors: the range of its inputs, and a band."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs
from twoscale.fields.samples import Source
from twoscale.fields.source import Batch, fields_at, random_rows
from twoscale.operators.operators import FieldOperator
from twoscale.problems import Problem
from twoscale.representation.base import subset
from twoscale.trust.band import Band
from twoscale.trust.difficulty import RESIDUAL, Difficulty, is_elliptic
from twoscale.trust.input_range import InputRange

Predict = Callable[[Batch], Tensor]
_CHOICE, _VALUES = 256, 2**25  # samples and their values that say what is difficult, at most


class Trust(nn.Module):
    """The range of the training inputs and, once calibrated, a band around predictions.

    It is stored with the surrogate, and never changed: a new calibration gives a new one. `kinds`
    are the names of the scores of difficulty.
    """

    def __init__(self, space: Space, kinds: Sequence[str] = ()) -> None:
        super().__init__()
        self.known = InputRange(space)
        self.band: Band | None = None
        self.kinds = tuple(kinds)

    @classmethod
    def of_inputs(cls, inputs: Source) -> Self:
        """Return the trust that training inputs allow: their range, and no band yet."""
        trust = cls(inputs.space)
        trust.known.fit(inputs)
        return trust

    @torch.no_grad()
    def calibrate(
        self,
        operator: FieldOperator,
        problem: Problem | None,
        predict: Predict,
        calibration: Pairs,
        choice: Pairs | None = None,
    ) -> Trust:
        """Return the same with a band, by the errors of pairs that took no part in the fit.

        The pairs `choice`, which may have taken part, say which samples and nodes are difficult.
        Without them an earlier calibration's answer is kept.
        """
        difficulty = Difficulty(operator, problem, self.known)
        band = Band()
        if choice is not None or self.band is None or self.kinds != difficulty.kinds:
            inputs, truth = _drawn(choice) if choice else _drawn(calibration, 0)
            predicted, usual = predict(inputs), difficulty.usual_powers
            band.fit(difficulty(inputs, predicted), predicted, truth, usual)
        else:
            band.powers, band.profile = self.band.powers, self.band.profile
        parts = []
        for inputs, truth in calibration.chunks():
            predicted = predict(inputs)
            parts.append(band.ratios_of(difficulty(inputs, predicted), predicted, truth))
        return self._with_band(band.calibrate(parts), difficulty.kinds)

    def without_band(self) -> Trust:
        """Return the range of inputs alone: it holds for other predictions as well."""
        return self._with_band(None, ())

    def _with_band(self, band: Band | None, kinds: Sequence[str]) -> Trust:
        other = Trust(self.known.space, kinds)
        other.known, other.band = self.known, band
        return other

    def calibrated(self) -> Band:
        """Return the band, or raise if there is none."""
        if self.band is None:
            raise TwoscaleError(
                "this surrogate is not calibrated: call calibrate with pairs of fields that took "
                "no part in its fit"
            )
        return self.band

    def scores_with(self, problem: Problem | None) -> bool:
        """Say whether what was calibrated can be scored with a problem, or without any."""
        return RESIDUAL not in self.kinds or is_elliptic(problem, self.known.space)

    def difficulty(self, operator: FieldOperator, problem: Problem | None) -> Difficulty:
        """Return what scores the predictions of an operator, in the way that was calibrated."""
        return Difficulty(operator, problem, self.known, self.kinds)

    def check(self, outputs: Space) -> None:
        """Raise if the state does not fit fields of the inputs' and the outputs' spaces."""
        space = self.known.space
        self.known(Batch(torch.ones(1, *space.shape), torch.ones(1, space.parameters)))
        if self.band is not None and (
            self.band.profile.shape != outputs.shape or len(self.band.powers) != len(self.kinds)
        ):
            raise TwoscaleError("the calibration belongs to another surrogate")

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the state from tensors, named as in `state_dict`."""
        self.known.restore(subset(tensors, "known"))
        band = subset(tensors, "band")
        self.band = Band().restore(band) if band else None
        return self


def _drawn(pairs: Pairs, most: int = _CHOICE) -> tuple[Batch, Tensor]:
    """Return inputs and outputs of some pairs, drawn at random from all of them."""
    sides = (pairs.inputs.fields, pairs.outputs.fields)
    values = max(math.prod(one.shape[1:]) for one in sides)
    rows = random_rows(len(pairs), min(most, max(1, _VALUES // values)))
    fields, outputs = (fields_at(one, rows) for one in sides)
    scalars = pairs.inputs.scalars
    return Batch(fields, scalars[rows.to(scalars.device)].to(fields.device)), outputs
