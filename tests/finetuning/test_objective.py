"""The objective of a minibatch: its gradient, its columns, and what it decodes."""

from types import SimpleNamespace

import pytest
import torch

from tests.finetuning.affine import AffineDecoder, Coupled, make_batch
from tests.sources import ChunkSource, field_pairs
from twoscale.finetuning.objective import FieldObjective
from twoscale.finetuning.terms import FieldTerm, SpectralTerm, code_term
from twoscale.math.measures import in_unit, relative_l2, trace_error
from twoscale.math.traces import TRACES
from twoscale.operators.fitting import FitOptions
from twoscale.problems.measures import flux_trace_error, residual_rms

TRACED = ("reconstruction", "value", "normal_derivative")
ALL = (*TRACED, "residual", "flux", "spectral")


class Source(ChunkSource):
    """Fields in chunks of a length."""

    def __init__(self, fields, length):
        self.fields = fields
        self.length = length
        self.shape = tuple(fields.shape)

    def chunks(self):
        yield from self.fields.split(self.length)


def make_measure(name, seams, unit):
    if name == "reconstruction":
        return in_unit(relative_l2, unit)
    if name in TRACES:
        return in_unit(trace_error(TRACES[name], seams), unit)
    problem = Coupled(fixed=name != "flux")
    measure = residual_rms(problem) if name == "residual" else flux_trace_error(problem, seams)
    return in_unit(measure, unit)


def make_objective(decoder, names, space, *, batch=None):
    """An objective with all kinds of weights, and the pairs of its fields."""
    batch = batch or make_batch(decoder)
    terms = {}
    for name in names:
        if name == "spectral":
            terms[name] = SpectralTerm(decoder.unit)
            continue
        measure = make_measure(name, decoder.layout.seams, decoder.unit)
        on_codes = space == "code" and measure.on_codes
        terms[name] = code_term(measure, decoder, batch) if on_codes else FieldTerm(measure)
    objective = FieldObjective(terms, decoder)
    objective.weights = {name: 0.3 + k for k, name in enumerate(names)}
    objective.set_share(0.7)
    operator = SimpleNamespace(encode=lambda fields: fields.flatten(1))
    fields = field_pairs(Source(batch.inputs, 5), Source(batch.truth, 4))
    return objective, objective.pairs(operator, fields, FitOptions())


@pytest.fixture(params=[1, 2, 3], ids=lambda channels: f"{channels} channels")
def decoder(request):
    return AffineDecoder(request.param)


@pytest.mark.parametrize("space", ["code", "field"])
@pytest.mark.parametrize("names", [TRACED[:1], TRACED, ALL], ids=len)
def test_value_and_gradient_are_those_of_decoded_fields(decoder, names, space):
    """The reference decodes every field and differentiates automatically."""
    reference, targets = make_objective(decoder, names, "field")
    codes = targets.targets[:, : decoder.code_size]
    predicted = (1.05 * codes).requires_grad_()
    expected = reference(predicted, targets.targets)
    objective, pairs = make_objective(decoder, names, space)
    value, grad = objective.value_and_grad(predicted.detach(), pairs.targets)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=0)
    torch.testing.assert_close(
        grad, torch.autograd.grad(expected, predicted)[0], rtol=1e-8, atol=1e-10
    )


def test_channels_count_alike_whatever_their_size():
    """The gradient of the reconstruction is the mean of those of both channels, by its values."""
    decoder = AffineDecoder(2)
    objective, pairs = make_objective(decoder, TRACED[:1], "code")
    codes = pairs.targets[:, : decoder.code_size]
    predicted = (1.1 * codes).requires_grad_()
    batch = make_batch(decoder)
    ratios = [
        (decoder.decode(predicted) - batch.truth)[:, c].square().sum()
        / batch.truth[:, c].square().sum()
        for c in range(2)
    ]
    expected = ((ratios[0] + ratios[1]) / 2).sqrt()
    value, grad = objective.value_and_grad(predicted.detach(), pairs.targets)
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(grad, torch.autograd.grad(expected, predicted)[0])


def test_single_precision_keeps_the_gradient_of_channels_of_very_different_size():
    grads = []
    for dtype in (torch.float64, torch.float32):
        decoder = AffineDecoder(2).to(dtype)
        objective, pairs = make_objective(decoder, TRACED, "code")
        codes = pairs.targets[:, : decoder.code_size]
        value, grad = objective.value_and_grad(1.1 * codes, pairs.targets)
        assert value.dtype == grad.dtype == dtype
        grads.append(grad.double())
    assert (grads[1] - grads[0]).norm() < 1e-3 * grads[0].norm()


@pytest.mark.parametrize("space", ["code", "field"])
def test_the_measure_over_all_pairs_is_that_of_one_batch(decoder, space):
    objective, pairs = make_objective(decoder, ALL, space)
    predictor = torch.nn.Linear(pairs.inputs.shape[1], decoder.code_size).double()
    together = objective.measure(predictor, pairs)
    with torch.no_grad():
        expected = objective.components(predictor(pairs.inputs), pairs.targets)
    assert list(together) == list(objective.terms)
    for name, value in expected.items():
        assert together[name] == pytest.approx(float(value), rel=1e-10), name


@pytest.mark.parametrize(("space", "decoded"), [("code", 0), ("field", 1)])
def test_a_step_decodes_at_most_once_and_carries_fields_once(decoder, space, decoded, monkeypatch):
    batch = make_batch(decoder, input_shape=(4, 3, 5))
    objective, pairs = make_objective(decoder, TRACED, space, batch=batch)
    codes = pairs.targets[:, : decoder.code_size]
    calls = []
    decode = AffineDecoder.decode
    monkeypatch.setattr(AffineDecoder, "decode", lambda self, z: calls.append(z) or decode(self, z))
    objective.value_and_grad(1.05 * codes, pairs.targets)
    assert len(calls) == decoded
    assert objective.columns[1] == decoded * (batch.truth[0].numel() + 4 * 3 * 5)
    calls.clear()
    objective.components(1.05 * codes, pairs.targets)
    assert len(calls) == decoded
