"""Objectives evaluated on codes agree with their evaluation on decoded fields."""

import copy

import pytest
import torch

from tests.conftest import make_poisson
from twoscale import Darcy, Grid, PatchLayout, PatchPCA, Poisson, RankRule, TwoScale
from twoscale.fields.measures import (
    TRACES,
    Batch,
    relative_l2,
    trace_error,
    weighted_spectral_distance,
)
from twoscale.finetuning.objective import FieldObjective
from twoscale.finetuning.terms import (
    AbsoluteTerm,
    FieldTerm,
    Prediction,
    QuadraticTerm,
    SpectralTerm,
    code_term,
)
from twoscale.problems.measures import flux_measures, flux_trace_error, residual_rms
from twoscale.representation.geometry import decoder_gram

DECODERS = {
    "two-scale": lambda: TwoScale(coarse_components=4),
    "local": lambda: PatchPCA(RankRule(variance=0.98)),
    "overlap": lambda: PatchPCA(RankRule(variance=0.98), overlap=True),
    "rectangular": lambda: PatchPCA(RankRule(variance=0.98), patches=(2, 4)),
}
MEASURES = {
    "reconstruction": lambda seams: relative_l2,
    "value": lambda seams: trace_error(TRACES["value"], seams),
    "normal_derivative": lambda seams: trace_error(TRACES["normal_derivative"], seams),
    "residual": lambda seams: residual_rms(Poisson()),
    "flux": lambda seams: flux_trace_error(Poisson(), seams),
}


@pytest.fixture(scope="module")
def fields():
    return make_poisson((32, 32), 200)


@pytest.fixture(scope="module", params=DECODERS)
def decoder(request, fields):
    return DECODERS[request.param]().fit(fields.outputs[:150])


def tracked(decoder, inputs, truth):
    """The true codes and the batch they decode to, as terms are prepared from."""
    codes = decoder.encode(truth).requires_grad_()
    return codes, Batch(decoder.decode(codes), truth, inputs)


def known(batch):
    """The fields that terms on fields look at, as they travel with the codes."""
    return torch.cat([batch.truth.flatten(1), batch.inputs.flatten(1)], 1)


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


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("name", MEASURES)
def test_value_and_gradient_on_codes_are_those_on_fields(decoder, fields, name, dtype, tolerance):
    decoder = copy.deepcopy(decoder).to(dtype)
    codes, batch = tracked(decoder, *(part[150:].to(dtype) for part in fields))
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(codes.shape, generator=generator).to(dtype)
    predicted = codes + 0.05 * codes.std(0) * noise
    measure = MEASURES[name](decoder.layout.seams)
    results = []
    for term in (code_term(measure, decoder, batch), FieldTerm(measure)):
        prepared = term.prepare(codes, batch)
        code = predicted.detach().clone().requires_grad_()
        prediction = Prediction(code, codes.detach(), known(batch), decoder)
        value = term.finish(*term.parts(prediction, prepared))
        results.append((value.detach(), torch.autograd.grad(value, code)[0]))
    (value, gradient), (expected, expected_gradient) = results
    assert abs(value / expected - 1) < tolerance
    assert (gradient - expected_gradient).norm() < tolerance * expected_gradient.norm()


def test_matrices_keep_their_digits_on_a_fine_grid():
    """Normal derivatives divide differences of float32 values by a small spacing."""
    fields = make_poisson((128, 128), 60)
    decoder = TwoScale(coarse_components=4, coarse_factor=32).fit(fields.outputs)
    _, batch = tracked(decoder, *fields)
    measure = MEASURES["normal_derivative"](decoder.layout.seams)
    matrix = code_term(measure, decoder, batch).matrix
    exact = copy.deepcopy(decoder).double()
    unit = torch.eye(decoder.code_size, dtype=torch.float64)[:20]
    both = Batch(exact.decode(unit), exact.decode(torch.zeros_like(unit)))
    expected = measure.values(both)
    assert (matrix[:20] - expected).norm() < 1e-6 * expected.norm()


def test_the_field_term_is_the_metric(decoder, fields):
    inputs, truth = (part[150:] for part in fields)
    codes = decoder.encode(truth)
    term = FieldTerm(relative_l2)
    batch = Batch(decoder.decode(codes), truth, inputs)
    prediction = Prediction(codes, codes, known(batch), decoder)
    value = term.finish(*term.parts(prediction, term.prepare(codes, batch)))
    assert value == pytest.approx(float(relative_l2(Batch(decoder.decode(codes), truth))), rel=1e-6)


def test_minibatches_are_one_ratio(decoder, fields):
    codes, batch = tracked(decoder, *(part[150:] for part in fields))
    term = code_term(relative_l2, decoder, batch)
    prepared = term.prepare(codes, batch)
    codes = codes.detach()

    def parts(part):
        fields = known(batch)[part]
        return term.parts(
            Prediction(codes[part] * 1.1, codes[part], fields, decoder), prepared[part]
        )

    halves = [parts(slice(25)), parts(slice(25, 50))]
    together = parts(slice(50))
    for position in range(2):
        total = halves[0][position] + halves[1][position]
        assert float(total) == pytest.approx(float(together[position]), rel=1e-5)


def test_affine_measures_choose_their_form(decoder, fields):
    batch = Batch(fields.outputs[:1], fields.outputs[:1], fields.inputs[:1])
    seams = decoder.layout.seams
    assert isinstance(code_term(relative_l2, decoder, batch), QuadraticTerm)
    assert isinstance(code_term(trace_error(TRACES["value"], seams), decoder, batch), AbsoluteTerm)


def test_spectral_term_weights_high_waves(decoder, fields):
    truth = fields.outputs[150:]
    term = SpectralTerm()
    codes = decoder.encode(truth)
    prepared = term.prepare(codes, Batch(truth, truth))
    prediction = Prediction(codes, codes, codes[:, :0], decoder)
    mean = [total / len(truth) for total in term.parts(prediction, prepared)]
    weight = 1 + torch.arange(len(mean[0])) / (len(mean[0]) - 1)
    expected = (weight * (mean[0] - mean[1])).norm() / (weight * mean[1]).norm()
    assert float(term.finish(*mean)) == pytest.approx(float(expected), rel=1e-5)
    assert float(weighted_spectral_distance(mean[1], mean[1])) == 0.0


def test_darcys_operator_is_not_fixed():
    layout = PatchLayout.tiling((16, 16), (4, 4))
    assert not residual_rms(Darcy()).fixed
    assert not flux_trace_error(Darcy(), layout.seams).fixed
    assert residual_rms(Poisson()).fixed


def test_flux_trace_by_hand():
    inputs = Darcy().sample(Grid.square(16), range(2), seed=0)
    fields = torch.randn(2, 16, 16, generator=torch.Generator().manual_seed(0)).double()
    batch = Batch(fields, torch.zeros_like(fields), inputs)
    jump = float(flux_measures(Darcy(), ([5], [9]))["flux_jump"](batch))
    total, h = [], 1 / 15
    for v, a in zip(fields, inputs, strict=True):
        for k in range(16):
            for line, grain, b in ((v[:, k], a[:, k], 5), (v[k], a[k], 9)):
                right = (grain[b] + grain[b + 1]) / 2 * (line[b + 1] - line[b]) / h
                left = (grain[b - 1] + grain[b]) / 2 * (line[b] - line[b - 1]) / h
                total.append(abs(float(right - left)))
    assert jump == pytest.approx(sum(total) / len(total))


@pytest.mark.parametrize("space", ["code", "field"])
@pytest.mark.parametrize("names", [("reconstruction",), tuple(MEASURES)[:3], tuple(MEASURES)])
def test_the_written_out_gradient_is_the_automatic_one(decoder, fields, names, space):
    objective, codes, targets = make_objective(decoder, fields, names, space)
    predicted = (1.05 * codes).detach().requires_grad_()
    expected = objective(predicted, targets)
    value, slope = objective.value_and_slope(predicted.detach(), targets)
    assert float(value) == pytest.approx(float(expected.detach()), rel=1e-5)
    torch.testing.assert_close(
        slope, torch.autograd.grad(expected, predicted)[0], rtol=1e-4, atol=1e-6
    )


def make_objective(decoder, fields, names, space):
    """An objective with all kinds of weights, true codes, and the columns of their targets."""
    codes, batch = tracked(decoder, *(part[150:] for part in fields))
    terms = {}
    for name in names:
        measure = MEASURES[name](decoder.layout.seams)
        on_codes = space == "code"
        terms[name] = code_term(measure, decoder, batch) if on_codes else FieldTerm(measure)
    terms |= {"spectral": SpectralTerm()} if len(names) > 3 else {}
    objective = FieldObjective(terms, decoder)
    objective.weights = {name: 0.3 + k for k, name in enumerate(terms)}
    objective.set_share(0.7)
    targets = objective._targets(batch.inputs, batch.truth)
    objective.columns = [part.shape[1] for part in targets]
    return objective, codes, torch.cat(targets, 1)


@pytest.mark.parametrize(("space", "decoded"), [("code", 0), ("field", 1)])
def test_a_step_decodes_at_most_once_and_carries_fields_once(
    decoder, fields, space, decoded, monkeypatch
):
    objective, codes, targets = make_objective(decoder, fields, tuple(MEASURES)[:3], space)
    calls = []
    decode = type(decoder).decode
    monkeypatch.setattr(type(decoder), "decode", lambda self, z: calls.append(z) or decode(self, z))
    objective.value_and_slope((1.05 * codes).detach(), targets)
    assert len([z for z in calls if z.shape == codes.shape]) == decoded
    assert objective.columns[1] == decoded * 2 * 32 * 32
    calls.clear()
    objective.components((1.05 * codes).detach(), targets)
    assert len([z for z in calls if z.shape == codes.shape]) == decoded
