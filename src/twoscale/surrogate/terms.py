"""Objectives of decoded fields as functions of codes.

A decoder is affine in the code, so values that are affine in the field are affine in the code: a
small matrix replaces the field. Everything is expanded around the true code z of a sample,
phi(D(z^)) = phi(D(z)) + Phi (z^ - z), which keeps the digits where the errors are. What needs the
truth is computed once per sample and travels with its code as a row of numbers. Such terms decode
no field while training; what is not affine is evaluated on decoded fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from twoscale.fields import (
    AffineMeasure,
    Batch,
    Measure,
    Parts,
    radial_spectrum,
    weighted_spectral_distance,
)
from twoscale.representation import Representation
from twoscale.source import slices

_BASIS_FIELDS = 64  # code directions pushed through the decoder together


class Term(ABC):
    """One term of an objective: two sums over a minibatch, and the number they make."""

    finish: Callable[[Tensor, Tensor], Tensor]
    whole_fields = False  # whether what it needs of a sample grows with the field's area

    @abstractmethod
    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        """Return what the term needs of each sample, (batch, columns).

        `codes` are the true codes; `batch` holds what they decode to, the truth and the inputs.
        """

    @abstractmethod
    def parts(self, predicted: Tensor, codes: Tensor, prepared: Tensor) -> Parts:
        """Return the sums over a minibatch of predicted codes."""


class FieldTerm(Term):
    """Any measure, evaluated on decoded fields: the reference, and the way for what is not affine.

    Truth and inputs travel with the codes as whole fields.
    """

    whole_fields = True

    def __init__(self, measure: Measure, decoder: Representation) -> None:
        self.measure = measure
        self.decoder = decoder
        self.finish = measure.finish

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        assert batch.inputs is not None
        self.shape = batch.truth.shape[1:]
        return torch.cat([batch.truth.flatten(1), batch.inputs.flatten(1)], 1)

    def parts(self, predicted: Tensor, codes: Tensor, prepared: Tensor) -> Parts:
        truth, inputs = (half.unflatten(1, self.shape) for half in prepared.chunk(2, 1))
        return self.measure.parts(Batch(self.decoder.decode(predicted), truth, inputs))


class SpectralTerm(Term):
    """Distance of the minibatch's mean radial spectra; the truth travels as its spectrum."""

    finish = staticmethod(weighted_spectral_distance)

    def __init__(self, decoder: Representation) -> None:
        self.decoder = decoder

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        return radial_spectrum(batch.truth)

    def parts(self, predicted: Tensor, codes: Tensor, prepared: Tensor) -> Parts:
        return radial_spectrum(self.decoder.decode(predicted)).sum(0), prepared.sum(0)


class AbsoluteTerm(Term):
    """Sum of |phi| for affine values phi: a matrix times the code error, plus an offset."""

    def __init__(self, measure: AffineMeasure, decoder: Representation, sample: Batch) -> None:
        self.measure = measure
        self.finish = measure.finish
        with torch.no_grad():
            rows = [_change(measure, decoder, sample, units) for units in _unit_codes(decoder)]
        self.matrix = torch.cat(rows)  # (code, values)

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        values = self.measure.values(batch)
        return torch.cat([values, self.measure.weight(batch, values)[:, None]], 1)

    def parts(self, predicted: Tensor, codes: Tensor, prepared: Tensor) -> Parts:
        offset, weight = prepared[:, :-1], prepared[:, -1]
        return torch.addmm(offset, predicted - codes, self.matrix).abs().sum(), weight.sum()


class QuadraticTerm(Term):
    """Sum of phi^2 for affine values phi: a quadratic form of the code error.

    ||phi||^2 = d^T G d + 2 g^T d + ||phi_0||^2 with d the code error, G = Phi^T Phi for all samples
    and g = Phi^T phi_0 per sample. Both are gradients of half the square in the code, so
    the adjoint of the decoder is never written down.
    """

    def __init__(self, measure: AffineMeasure, decoder: Representation, sample: Batch) -> None:
        self.measure = measure
        self.decoder = decoder
        self.finish = measure.finish
        rows = []
        for units in _unit_codes(decoder):
            change = _change(measure, decoder, sample, units.requires_grad_())
            rows.append(torch.autograd.grad(0.5 * change.square().sum(), units)[0])
        gram = torch.cat(rows)
        self.gram = 0.5 * (gram + gram.mT)  # (code, code)

    def prepare(self, codes: Tensor, batch: Batch) -> Tensor:
        with torch.enable_grad():
            code = codes.detach().requires_grad_()
            values = self.measure.values(replace(batch, prediction=self.decoder.decode(code)))
            squares = values.square().sum(1)
            slope = torch.autograd.grad(0.5 * squares.sum(), code)[0]
        weight = self.measure.weight(batch, values.detach())
        return torch.cat([slope, squares.detach()[:, None], weight[:, None]], 1)

    def parts(self, predicted: Tensor, codes: Tensor, prepared: Tensor) -> Parts:
        slope, constant, weight = prepared[:, :-2], prepared[:, -2], prepared[:, -1]
        change = predicted - codes
        squares = ((change @ self.gram + 2 * slope) * change).sum() + constant.sum()
        return squares.clamp_min(torch.finfo(squares.dtype).tiny), weight.sum()


def code_term(measure: AffineMeasure, decoder: Representation, sample: Batch) -> Term:
    """Return the term that evaluates an affine measure on codes; `sample` is any one sample."""
    kind = AbsoluteTerm if measure.power == 1 else QuadraticTerm
    return kind(measure, decoder, sample)


def _unit_codes(decoder: Representation) -> Iterator[Tensor]:
    """Yield the unit codes in groups, on the decoder's device and in its type."""
    like = next(decoder.buffers())
    units = torch.eye(decoder.code_size, dtype=decoder.dtype, device=like.device)
    for part in slices(decoder.code_size, _BASIS_FIELDS):
        yield units[part].clone()


def _change(
    measure: AffineMeasure, decoder: Representation, sample: Batch, codes: Tensor
) -> Tensor:
    """Return how the values differ between `codes` and the zero code: the linear part alone."""

    def values(fields: Tensor) -> Tensor:
        count = len(fields)
        inputs = None if sample.inputs is None else sample.inputs[:1].expand(count, -1, -1)
        return measure.values(Batch(fields, sample.truth[:1].expand(count, -1, -1), inputs))

    return values(decoder.decode(codes)) - values(decoder.decode(torch.zeros_like(codes[:1])))
