"""Objectives on the codes of real representations agree with those on decoded fields."""

import copy

import pytest
import torch

from twoscale import Grid, PatchPCA, Poisson, TwoScale
from twoscale.domain.space import Space
from twoscale.finetuning.terms import FieldTerm, Prediction, code_term
from twoscale.math.measures import Compared, in_unit, relative_l2, trace_error
from twoscale.math.traces import TRACES
from twoscale.problems.measures import flux_trace_error, residual_rms
from twoscale.representation.geometry import decoder_gram

DECODERS = {
    "two-scale": lambda: TwoScale(coarse_components=4),
    "local": lambda: PatchPCA(0.98),
    "overlap": lambda: PatchPCA(0.98, overlap=True),
    "rectangular": lambda: PatchPCA(0.98, patches=(2, 4)),
}
MEASURES = {
    "reconstruction": lambda seams: relative_l2,
    "value": lambda seams: trace_error(TRACES["value"], seams),
    "normal_derivative": lambda seams: trace_error(TRACES["normal_derivative"], seams),
    "residual": lambda seams: residual_rms(Poisson()),
    "flux": lambda seams: flux_trace_error(Poisson(), seams),
}


def make_pairs(side, samples):
    """Inputs and solutions of Poisson's equation (samples, 1, side, side), float32."""
    inputs = Poisson().sample(Grid.square(side), range(samples), seed=0)
    solutions = Poisson().solve(inputs)
    return [fields.reshape(samples, 1, side, side).float() for fields in (inputs, solutions)]


@pytest.fixture(scope="module")
def pairs():
    return make_pairs(32, 200)


@pytest.fixture(scope="module", params=DECODERS)
def decoder(request, pairs):
    return DECODERS[request.param]().fit(pairs[1][:150])


def tracked(decoder, inputs, truth):
    """The true codes and the batch they decode to, as terms are prepared from."""
    codes = decoder.encode(truth).requires_grad_()
    return codes, Compared(decoder.decode(codes), truth, inputs)


def test_the_decoders_gram_matrix_gives_the_norms_of_fields(decoder, generator):
    gram = decoder_gram(decoder)
    assert gram.dtype == torch.float64
    assert torch.equal(gram, gram.T)
    codes = torch.randn(2, 5, decoder.code_size, generator=generator)
    change = (decoder.decode(codes[0]) - decoder.decode(codes[1])) / decoder.unit
    error = (codes[0] - codes[1]).double()
    squares = ((error @ gram) * error).sum(1)
    torch.testing.assert_close(
        squares.sqrt().float(), change.flatten(1).norm(dim=1), rtol=1e-4, atol=0
    )


def compare(decoder, measure, inputs, truth, tolerance):
    """Check a term's value and gradient on codes against those on decoded fields."""
    codes, batch = tracked(decoder, inputs, truth)
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(codes.shape, generator=generator).to(codes)
    predicted = codes + 0.05 * codes.std(0) * noise
    known = torch.cat([truth.flatten(1), inputs.flatten(1)], 1)
    shapes = (tuple(truth.shape[1:]), tuple(inputs.shape[1:]))
    results = []
    for term in (code_term(measure, decoder, batch), FieldTerm(measure)):
        prepared = term.prepare(codes, batch)
        code = predicted.detach().clone().requires_grad_()
        prediction = Prediction(code, codes.detach(), known, shapes, decoder)
        value = term.finish(*term.parts(prediction, prepared))
        results.append((value.detach(), torch.autograd.grad(value, code)[0]))
    (value, gradient), (expected, expected_gradient) = results
    assert abs(value / expected - 1) < tolerance
    assert (gradient - expected_gradient).norm() < tolerance * expected_gradient.norm()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("name", MEASURES)
def test_value_and_gradient_on_codes_are_those_on_fields(decoder, pairs, name, dtype, tolerance):
    decoder = copy.deepcopy(decoder).to(dtype)
    inputs, truth = (part[150:].to(dtype) for part in pairs)
    compare(decoder, MEASURES[name](decoder.layout.seams), inputs, truth, tolerance)


@pytest.mark.parametrize("name", ["reconstruction", "value", "normal_derivative"])
def test_channels_of_very_different_size_on_a_periodic_grid(pairs, name):
    inputs, outputs = pairs
    truth = torch.cat([outputs, 1e6 * inputs], 1)
    space = Space(Grid.square(32, periodic=True), 2)
    decoder = PatchPCA(0.98).fit(truth[:150], space=space)
    seams = decoder.layout.seams
    assert 0 in seams.rows
    measure = in_unit(MEASURES[name](seams), decoder.unit)
    compare(decoder, measure, inputs[150:], truth[150:], 1e-5)


def test_matrices_keep_their_digits_on_a_fine_grid():
    """Normal derivatives divide differences of float32 values by a small spacing."""
    inputs, outputs = make_pairs(128, 60)
    decoder = TwoScale(coarse_components=4, coarse_factor=32).fit(outputs)
    _, batch = tracked(decoder, inputs, outputs)
    measure = MEASURES["normal_derivative"](decoder.layout.seams)
    matrix = code_term(measure, decoder, batch).matrix
    exact = copy.deepcopy(decoder).double()
    unit = torch.eye(decoder.code_size, dtype=torch.float64)[:20]
    both = Compared(exact.decode(unit), exact.decode(torch.zeros_like(unit)))
    expected = measure.values(both).flatten(1)
    assert (matrix[:20] - expected).norm() < 1e-6 * expected.norm()
