"""Terms evaluated on codes agree with their evaluation on decoded fields."""

import pytest
import torch

from tests.finetuning.affine import AffineDecoder, Coupled, make_batch
from twoscale.finetuning.terms import (
    AbsoluteTerm,
    FieldTerm,
    Prediction,
    QuadraticTerm,
    SpectralTerm,
    code_term,
)
from twoscale.math.measures import (
    Compared,
    in_unit,
    relative_l2,
    trace_error,
    weighted_spectral_distance,
)
from twoscale.math.spectra import radial_spectrum
from twoscale.math.traces import TRACES
from twoscale.problems.measures import flux_trace_error, residual_rms

MEASURES = {
    "reconstruction": lambda seams: relative_l2,
    "value": lambda seams: trace_error(TRACES["value"], seams),
    "normal_derivative": lambda seams: trace_error(TRACES["normal_derivative"], seams),
    "residual": lambda seams: residual_rms(Coupled()),
    "one_equation": lambda seams: residual_rms(Coupled(equations=1)),
    "flux": lambda seams: flux_trace_error(Coupled(), seams),
}


@pytest.fixture(params=[1, 2, 3], ids=lambda channels: f"{channels} channels")
def decoder(request):
    return AffineDecoder(request.param)


def tracked(decoder, batch):
    """The true codes and the batch they decode to, as terms are prepared from."""
    codes = decoder.encode(batch.truth).requires_grad_()
    return codes, Compared(decoder.decode(codes), batch.truth, batch.inputs)


def predict(codes, batch, decoder, predicted):
    """A prediction beside the fields that terms on fields look at."""
    known = torch.cat([batch.truth.flatten(1), batch.inputs.flatten(1)], 1)
    shapes = (tuple(batch.truth.shape[1:]), tuple(batch.inputs.shape[1:]))
    return Prediction(predicted, codes.detach(), known, shapes, decoder)


def nearby(codes):
    noise = torch.randn(codes.shape, generator=torch.Generator().manual_seed(3))
    return (codes + 0.1 * noise.to(codes)).detach().requires_grad_()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-11)])
@pytest.mark.parametrize("name", MEASURES)
def test_value_and_gradient_on_codes_are_those_on_fields(decoder, name, dtype, tolerance):
    decoder = decoder.to(dtype)
    codes, batch = tracked(decoder, make_batch(decoder))
    measure = in_unit(MEASURES[name](decoder.layout.seams), decoder.unit)
    results = []
    for term in (code_term(measure, decoder, batch), FieldTerm(measure)):
        prepared = term.prepare(codes, batch)
        assert prepared.dtype == dtype
        code = nearby(codes)
        parts = term.parts(predict(codes, batch, decoder, code), prepared)
        results.append([*(part.detach() for part in parts), term.finish(*parts).detach()])
        results[-1].append(torch.autograd.grad(term.finish(*parts), code)[0])
    for got, expected in zip(*results, strict=True):
        assert got.shape == expected.shape
        assert (got - expected).norm() < tolerance * expected.norm()


@pytest.mark.parametrize("name", ["reconstruction", "residual"])
def test_the_written_out_gradient_of_squares_is_the_automatic_one(decoder, name):
    codes, batch = tracked(decoder, make_batch(decoder))
    measure = in_unit(MEASURES[name](decoder.layout.seams), decoder.unit)
    term = code_term(measure, decoder, batch)
    prepared = term.prepare(codes, batch)
    code = nearby(codes)
    value = term.finish(*term.parts(predict(codes, batch, decoder, code), prepared))
    got, grad = term.value_and_grad((code - codes).detach(), prepared)
    torch.testing.assert_close(got, value.detach())
    torch.testing.assert_close(grad, torch.autograd.grad(value, code)[0])


def test_a_channel_of_zeros_leaves_the_gradient_of_the_others():
    decoder = AffineDecoder(2)
    decoder.basis[:, 1] = 0
    decoder.mean[1] = 0
    batch = make_batch(AffineDecoder(2))
    batch.truth[:, 1] = 0
    codes, batch = tracked(decoder, batch)
    term = code_term(relative_l2, decoder, batch)
    field_term = FieldTerm(relative_l2)
    code = nearby(codes)
    prediction = predict(codes, batch, decoder, code)
    expected = field_term.finish(*field_term.parts(prediction, codes))
    value, grad = term.value_and_grad((code - codes).detach(), term.prepare(codes, batch))
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(grad, torch.autograd.grad(expected, code)[0])


def test_minibatches_are_one_ratio(decoder):
    codes, batch = tracked(decoder, make_batch(decoder))
    term = code_term(relative_l2, decoder, batch)
    prepared = term.prepare(codes, batch)

    def parts(part):
        one = Compared(batch.prediction[part], batch.truth[part], batch.inputs[part])
        prediction = predict(codes[part], one, decoder, 1.1 * codes[part].detach())
        return term.parts(prediction, prepared[part])

    halves, together = [parts(slice(4)), parts(slice(4, 9))], parts(slice(9))
    for position in range(2):
        torch.testing.assert_close(halves[0][position] + halves[1][position], together[position])


def test_affine_measures_choose_their_form(decoder):
    batch = make_batch(decoder)
    value = trace_error(TRACES["value"], decoder.layout.seams)
    assert isinstance(code_term(relative_l2, decoder, batch), QuadraticTerm)
    assert isinstance(code_term(value, decoder, batch), AbsoluteTerm)


def test_the_spectral_term_weights_high_waves(decoder):
    codes, batch = tracked(decoder, make_batch(decoder))
    term = SpectralTerm(decoder.unit)
    prediction = predict(codes, batch, decoder, codes.detach())
    parts = term.parts(prediction, term.prepare(codes, batch))
    spectra = [
        radial_spectrum(fields / decoder.unit).sum(0).detach()
        for fields in (batch.prediction, batch.truth)
    ]
    weight = 1 + torch.arange(spectra[0].shape[1]) / (spectra[0].shape[1] - 1)
    distances = (weight * (spectra[0] - spectra[1])).norm(dim=1) / (weight * spectra[1]).norm(dim=1)
    assert float(term.finish(*parts)) == pytest.approx(float(distances.square().mean().sqrt()))
    assert float(weighted_spectral_distance(spectra[1], spectra[1])) == 0.0


def test_inputs_may_have_channels_and_a_grid_of_their_own(decoder):
    batch = make_batch(decoder, input_shape=(3, 1, 5))
    codes, batch = tracked(decoder, batch)
    found = predict(codes, batch, decoder, codes.detach()).batch
    assert torch.equal(found.truth, batch.truth)
    assert torch.equal(found.inputs, batch.inputs)
