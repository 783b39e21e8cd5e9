"""Objectives of decoded fields as functions of codes.

A decoder is affine in the code, so values that are affine in the field are affine in the code: a
small matrix replaces the field. Everything is expanded around the true code z of a sample,
phi(D(z^)) = phi(D(z)) + Phi (z^ - z): small errors keep their digits. What depends on the truth is
computed once per sample and stored beside its code as a row of numbers. Such terms decode no field
in training. Terms that are not affine are evaluated on decoded fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from twoscale.math.measures import (
    AffineMeasure,
    Compared,
    Measure,
    Parts,
    divisors,
    weighted_spectral_distance,
)
from twoscale.math.spectra import radial_spectrum
from twoscale.representation import Representation
from twoscale.representation.geometry import code_changes, code_gram

Shape = tuple[int, ...]


class Prediction:
    """Predicted codes of a minibatch beside the true ones, and the fields they stand for.

    Fields are decoded once, when a term first asks for them. `known` (batch, values) holds the
    true and the input fields where any term looks at them, of these two `shapes`, each
    (channels, height, width).
    """

    def __init__(
        self,
        predicted: Tensor,
        codes: Tensor,
        known: Tensor,
        shapes: tuple[Shape, Shape],
        decoder: Representation,
    ) -> None:
        self.predicted = predicted
        self.codes = codes
        self.known = known
        self.shapes = shapes
        self.decoder = decoder

    @cached_property
    def error(self) -> Tensor:
        return self.predicted - self.codes

    @cached_property
    def fields(self) -> Tensor:
        return self.decoder.decode(self.predicted)

    @property
    def batch(self) -> Compared:
        parts = self.known.split([prod(shape) for shape in self.shapes], 1)
        truth, inputs = (
            part.unflatten(1, shape) for part, shape in zip(parts, self.shapes, strict=True)
        )
        return Compared(self.fields, truth, inputs)


class Term(ABC):
    """One term of an objective: two sums per channel over a minibatch, and the number they make."""

    finish: Callable[[Tensor, Tensor], Tensor]
    whole_fields = False  # whether it looks at the true and the input fields

    @abstractmethod
    def prepare(self, codes: Tensor, batch: Compared) -> Tensor:
        """Return what the term alone needs of each sample, (batch, columns).

        `codes` are the true codes, tracked; `batch` holds what they decode to, the truth and the
        inputs.
        """

    @abstractmethod
    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        """Return the sums over a minibatch."""


class FieldTerm(Term):
    """Any measure, evaluated on decoded fields: the reference for affine ones, the way for others.

    True and input fields are stored beside the codes.
    """

    whole_fields = True

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.finish = measure.finish

    def prepare(self, codes: Tensor, batch: Compared) -> Tensor:
        return codes.new_empty(len(codes), 0)

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        return self.measure.parts(prediction.batch)


class SpectralTerm(Term):
    """Distance of the minibatch's mean radial spectra; true spectra are stored beside the codes.

    High frequencies have larger weights. Each channel is divided by its unit (channels, 1, 1): the
    distance has fourth powers of the fields.
    """

    finish = staticmethod(weighted_spectral_distance)

    def __init__(self, unit: Tensor) -> None:
        self.unit = unit

    def prepare(self, codes: Tensor, batch: Compared) -> Tensor:
        return self._spectra(batch.truth).flatten(1)

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        spectra = self._spectra(prediction.fields).sum(0)
        return spectra, prepared.sum(0).reshape(spectra.shape)

    def _spectra(self, fields: Tensor) -> Tensor:
        return radial_spectrum(fields / self.unit.to(fields))


class AbsoluteTerm(Term):
    """Mean of |phi| for affine values phi: a matrix times the code error, plus an offset."""

    def __init__(self, measure: AffineMeasure, decoder: Representation, sample: Compared) -> None:
        self.measure = measure
        self.finish = measure.finish
        with torch.no_grad():
            rows = [change for _, change in code_changes(decoder, _on_codes(measure, sample))]
        changes = torch.cat(rows).to(decoder.dtype)  # (code, channels, values)
        self.channels = changes.shape[1]
        self.matrix = changes.flatten(1)

    def prepare(self, codes: Tensor, batch: Compared) -> Tensor:
        return self.measure.values(batch).detach().flatten(1)

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        values = torch.addmm(prepared, prediction.error, self.matrix)
        sums = values.abs().unflatten(1, (self.channels, -1)).sum((0, 2))
        return sums, values.new_full(sums.shape, values.numel() // self.channels)


class AbsoluteSum:
    """A weighted sum of absolute terms and its gradient, by one product with a matrix each."""

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
        self, value: Tensor, grad: Tensor, error: Tensor, offsets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return `value` and `grad` with this sum's own added."""
        values = torch.addmm(offsets, error, self.matrix)
        mean = 1 / len(values)
        total = torch.add(value, (values.abs() @ self.weights).sum(), alpha=mean)
        return total, torch.addmm(grad, values.sign_(), self.adjoint, alpha=mean)


class QuadraticTerm(Term):
    """Root mean square over channels of relative norms of affine values: quadratic forms of codes.

    ||phi_c||^2 = d^T G_c d + 2 g_c^T d + ||phi_c0||^2 for channel c, with d the code error,
    G_c = Phi_c^T Phi_c for all samples and g_c = Phi_c^T phi_c0 per sample. Both are gradients of
    half the square in the code, so the adjoint of the decoder is never written down.
    """

    def __init__(self, measure: AffineMeasure, decoder: Representation, sample: Compared) -> None:
        self.measure = measure
        self.finish = measure.finish
        values = _on_codes(measure, sample)
        self.channels = values(sample.truth[:1].double()).shape[1]
        grams = [code_gram(decoder, _channel(values, c)) for c in range(self.channels)]
        self.gram = torch.cat(grams, 1).to(decoder.dtype)  # (code, channels x code)

    def prepare(self, codes: Tensor, batch: Compared) -> Tensor:
        """Return g_c of all channels, then their squares, then their weights."""
        with torch.enable_grad():
            values = self.measure.values(batch)
            squares = values.square().sum(2)
            grads = [
                torch.autograd.grad(0.5 * one.sum(), codes, retain_graph=True)[0]
                for one in squares.unbind(1)
            ]
        weight = self.measure.weight(batch, values).detach()
        return torch.cat([*grads, squares.detach(), weight], 1)

    def parts(self, prediction: Prediction, prepared: Tensor) -> Parts:
        squares, weight, _ = self._sums(prediction.error, prepared)
        return squares.reshape(self.channels), weight.reshape(self.channels)

    def value_and_grad(self, error: Tensor, prepared: Tensor) -> tuple[Tensor, Tensor]:
        """Return sqrt(mean over channels of squares / weight) and its gradient in the code."""
        squares, weight, half_grads = self._sums(error, prepared)
        if self.channels == 1:
            value = (squares / weight).sqrt()
            return value, half_grads / (value * weight)
        value = self.finish(squares, weight)
        divisor, count = divisors(weight)
        shares = 1 / (divisor * (count * value))  # (channels,)
        apart = half_grads.view(len(error), self.channels, -1)
        return value, torch.einsum("bck,c->bk", apart, shares)

    def _sums(self, error: Tensor, prepared: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the squares and weights of a minibatch, and half the squares' gradients.

        They are (channels,), (channels,) and (batch, channels x code). For a single channel the
        first two are scalars: the time of a small step is the number of its operations.
        """
        size = self.gram.shape[1]
        grads, per_sample = prepared[:, :size], prepared[:, size:]
        half_grads = torch.addmm(grads, error, self.gram)
        changes = half_grads + grads
        if self.channels == 1:
            constant, weight = per_sample.sum(0)
            squares = (changes * error).sum() + constant
        else:
            constant, weight = per_sample.sum(0).chunk(2)
            apart = changes.view(len(error), self.channels, -1)
            squares = torch.einsum("bck,bk->c", apart, error) + constant
        return squares.clamp_min(torch.finfo(squares.dtype).tiny), weight, half_grads


def code_term(measure: AffineMeasure, decoder: Representation, sample: Compared) -> Term:
    """Return the term that evaluates an affine measure on codes; `sample` is any one sample."""
    kind = AbsoluteTerm if measure.power == 1 else QuadraticTerm
    return kind(measure, decoder, sample)


def _on_codes(measure: AffineMeasure, sample: Compared) -> Callable[[Tensor], Tensor]:
    """Return a measure's values as a function of predicted fields, for one sample's truth."""
    truth = sample.truth[:1].double()
    inputs = None if sample.inputs is None else sample.inputs[:1].double()

    def values(fields: Tensor) -> Tensor:
        count = len(fields)
        known = None if inputs is None else inputs.expand(count, -1, -1, -1)
        return measure.values(Compared(fields, truth.expand(count, -1, -1, -1), known))

    return values


def _channel(values: Callable[[Tensor], Tensor], channel: int) -> Callable[[Tensor], Tensor]:
    """Return those values (batch, channels, n) that belong to one channel."""
    return lambda fields: values(fields)[:, channel]
