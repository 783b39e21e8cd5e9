"""Objectives of decoded fields as functions of codes.

A decoder is affine in the code, so values that are affine in the field are affine in the code: a
small matrix replaces the field. Everything is expanded around the true code z of a sample,
phi(D(z^)) = phi(D(z)) + Phi (z^ - z), which keeps the digits where the errors are. What needs the
truth is computed once per sample and travels with its code as a row of numbers. Such terms decode
no field while training; what is not affine is evaluated on decoded fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from twoscale.fields.measures import (
    AffineMeasure,
    Batch,
    Measure,
    Parts,
    radial_spectrum,
    weighted_spectral_distance,
)
from twoscale.representation import Representation
from twoscale.representation.geometry import code_changes, code_gram


class Prediction:
    """Predicted codes of a minibatch beside the true ones, and the fields they stand for.

    Fields are decoded once, when a term first asks for them. `known` (batch, 2 nodes) holds the
    true and the input fields where any term looks at them.
    """

    def __init__(
        self, predicted: Tensor, codes: Tensor, known: Tensor, decoder: Representation
    ) -> None:
        self.predicted = predicted
        self.codes = codes
        self.known = known
        self.decoder = decoder

    @cached_property
    def error(self) -> Tensor:
        return self.predicted - self.codes

    @cached_property
    def fields(self) -> Tensor:
        return self.decoder.decode(self.predicted)

    @property
    def batch(self) -> Batch:
        truth, inputs = (half.reshape(self.fields.shape) for half in self.known.chunk(2, 1))
        return Batch(self.fields, truth, inputs)


class Term(ABC):
    """One term of an objective: two sums over a minibatch, and the number they make."""

    finish: Callable[[Tensor, Tensor], Tensor]
    whole_fields = False  # whether it looks at the true and the input fields

    @abstractmethod
    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        """Return what the term alone needs of each sample, (batch, columns).

        `codes` are the true codes, tracked; `batch` holds what they decode to, the truth and the
        inputs.
        """

    @abstractmethod
    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        """Return the sums over a minibatch."""


class FieldTerm(Term):
    """Any measure, evaluated on decoded fields: the reference, and the way for what is not affine.

    Truth and inputs travel with the codes as whole fields.
    """

    whole_fields = True

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.finish = measure.finish

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        return codes.new_empty(len(codes), 0)

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        return self.measure.parts(prediction.batch)


class SpectralTerm(Term):
    """Distance of the minibatch's mean radial spectra; the truth travels as its spectrum.

    Fields are taken in a `unit` of theirs: the distance has fourth powers of them.
    """

    finish = staticmethod(weighted_spectral_distance)

    def __init__(self, unit: float = 1.0) -> None:
        self.unit = unit

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        return radial_spectrum(batch.truth / self.unit)

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        return radial_spectrum(prediction.fields / self.unit).sum(0), prepared.sum(0)


class AbsoluteTerm(Term):
    """Mean of |phi| for affine values phi: a matrix times the code error, plus an offset."""

    def __init__(self, measure: AffineMeasure, decoder: Representation, sample: Batch) -> None:
        self.measure = measure
        self.finish = measure.finish
        with torch.no_grad():
            rows = [change for _, change in code_changes(decoder, _on_codes(measure, sample))]
        self.matrix = torch.cat(rows).to(decoder.dtype)  # (code, values)

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        return self.measure.values(batch).detach()

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        values = torch.addmm(prepared, prediction.error, self.matrix)
        return values.abs().sum(), values.new_tensor(values.numel())


class AbsoluteSum:
    """A weighted sum of absolute terms, with its gradient: one product forth and one back."""

    def __init__(self, terms: Sequence[AbsoluteTerm]) -> None:
        self.sizes = [term.matrix.shape[1] for term in terms]
        self.matrix = torch.cat([term.matrix for term in terms], 1)
        self.weights = self.matrix.new_zeros(self.matrix.shape[1])  # per value
        self.adjoint = torch.zeros_like(self.matrix.mT).contiguous()  # weighted

    def weigh(self, weights: Sequence[float]) -> None:
        """Set the terms' weights, in place."""
        means = [weight / size for weight, size in zip(weights, self.sizes, strict=True)]
        for part, mean in zip(self.weights.split(self.sizes), means, strict=True):
            part.fill_(mean)
        torch.mul(self.matrix.mT, self.weights[:, None], out=self.adjoint)

    def add_to(
        self, value: Tensor, slope: Tensor, error: Tensor, offsets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return `value` and `slope` with this sum's own added."""
        values = torch.addmm(offsets, error, self.matrix)
        mean = 1 / len(values)
        total = torch.add(value, (values.abs() @ self.weights).sum(), alpha=mean)
        return total, torch.addmm(slope, values.sign_(), self.adjoint, alpha=mean)


class QuadraticTerm(Term):
    """Sum of phi^2 for affine values phi: a quadratic form of the code error.

    ||phi||^2 = d^T G d + 2 g^T d + ||phi_0||^2 with d the code error, G = Phi^T Phi for all samples
    and g = Phi^T phi_0 per sample. Both are gradients of half the square in the code, so
    the adjoint of the decoder is never written down.
    """

    def __init__(self, measure: AffineMeasure, decoder: Representation, sample: Batch) -> None:
        self.measure = measure
        self.finish = measure.finish
        self.gram = code_gram(decoder, _on_codes(measure, sample)).to(decoder.dtype)  # (code, code)

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        with torch.enable_grad():
            values = self.measure.values(batch)
            squares = values.square().sum(1)
            half = 0.5 * squares.sum()
            slope = torch.autograd.grad(half, codes, retain_graph=True)[0]
        weight = self.measure.weight(batch, values).detach()
        return torch.cat([slope, squares.detach()[:, None], weight[:, None]], 1)

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        squares, weight, _ = self._sums(prediction.error, prepared)
        return squares, weight

    def value_and_slope(self, error: Tensor, prepared: Tensor) -> tuple[Tensor, Tensor]:
        """Return sqrt(squares / weight) and its gradient in the code."""
        squares, weight, half_slope = self._sums(error, prepared)
        value = self.finish(squares, weight)
        return value, half_slope / (value * weight)

    def _sums(self, error: Tensor, prepared: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the squares and the weight of a minibatch, and half the squares' gradient."""
        slope, per_sample = prepared[:, :-2], prepared[:, -2:]
        half_slope = torch.addmm(slope, error, self.gram)
        constant, weight = per_sample.sum(0)
        squares = ((half_slope + slope) * error).sum() + constant
        return squares.clamp_min(torch.finfo(squares.dtype).tiny), weight, half_slope


def code_term(measure: AffineMeasure, decoder: Representation, sample: Batch) -> Term:
    """Return the term that evaluates an affine measure on codes; `sample` is any one sample."""
    kind = AbsoluteTerm if measure.power == 1 else QuadraticTerm
    return kind(measure, decoder, sample)


def _on_codes(measure: AffineMeasure, sample: Batch) -> Callable[[Tensor], Tensor]:
    """Return a measure's values as a function of predicted fields, for one sample's truth."""
    truth = sample.truth[:1].double()
    inputs = None if sample.inputs is None else sample.inputs[:1].double()

    def values(fields: Tensor) -> Tensor:
        count = len(fields)
        known = None if inputs is None else inputs.expand(count, -1, -1)
        return measure.values(Batch(fields, truth.expand(count, -1, -1), known))

    return values
