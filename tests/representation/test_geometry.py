import copy

import pytest
import torch

from tests.spaces import SPACES, poisson_fields, smooth_fields
from twoscale import GlobalPCA, PatchPCA, RankRule, Surrogate, TwoScale, TwoscaleError
from twoscale.representation import geometry
from twoscale.representation.geometry import NearestCodes, decoder_isometry, one_isometry


@pytest.fixture
def decoder():
    return GlobalPCA(3).fit(poisson_fields((16, 16), 12))


def test_it_is_computed_once_inside_and_forgotten_outside(decoder):
    with one_isometry(decoder):
        first = decoder_isometry(decoder)
        assert decoder_isometry(decoder) is first
        other = GlobalPCA(3).fit(poisson_fields((16, 16), 12))
        assert decoder_isometry(other) is not first
    again = decoder_isometry(decoder)
    assert again is not first
    torch.testing.assert_close(again.to_coordinates, first.to_coordinates)
    assert geometry._REMEMBERED == {}


@pytest.mark.parametrize("name", SPACES)
def test_coordinates_are_as_far_apart_as_the_fields_in_their_units(name, generator):
    space = SPACES[name]
    decoder = PatchPCA(0.9, overlap=True).fit(smooth_fields(space), space=space)
    codes = torch.randn(6, decoder.code_size, generator=generator)
    fields = decoder.decode(codes).double() / decoder.unit.double()
    expected = torch.pdist(fields.flatten(1))
    isometry = decoder_isometry(decoder)
    found = torch.pdist(codes.double() @ isometry.to_coordinates)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_codes_come_back_from_their_coordinates(decoder, generator):
    codes = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    isometry = decoder_isometry(decoder)
    again = codes @ isometry.to_coordinates @ isometry.from_coordinates
    torch.testing.assert_close(again, codes)


def test_a_code_that_is_too_long_is_refused(decoder, monkeypatch):
    monkeypatch.setattr(geometry, "_LARGEST", 2)
    with pytest.raises(
        TwoscaleError, match=r"an output code of 3 numbers .* takes at most 2: use a repres"
    ):
        decoder_isometry(decoder)


def test_a_fit_computes_it_once(poisson16, monkeypatch):
    calls = []
    gram = geometry.decoder_gram
    monkeypatch.setattr(geometry, "decoder_gram", lambda one: calls.append(one) or gram(one))
    settings = {"objective": "field", "coarse_components": 4}
    for predictor in ("affine", "kernel", "encoder"):
        options = {"epochs": 1, "width": 4} if predictor == "encoder" else {}
        surrogate = Surrogate("two-scale", device="cpu", predictor=predictor, **settings, **options)
        surrogate.fit(*poisson16)
        assert len(calls) == 1, predictor
        calls.clear()


# The nearest codes


DECODERS = {
    "two-scale": lambda: TwoScale(coarse_components=4),
    "local": lambda: PatchPCA(RankRule(variance=0.98)),
    "overlap": lambda: PatchPCA(RankRule(variance=0.98), overlap=True),
    "global": lambda: GlobalPCA(RankRule(variance=0.98)),
}


@pytest.fixture(scope="module")
def fields():
    return poisson_fields((32, 32), 120)


@pytest.fixture(scope="module", params=DECODERS)
def representation(request, fields):
    return DECODERS[request.param]().fit(fields[:100])


def test_no_other_code_is_nearer(representation, fields):
    """By least squares on the decoder's matrix."""
    exact, new = copy.deepcopy(representation).double(), fields[100:].double()
    units = torch.eye(exact.code_size, dtype=torch.float64)
    zero = exact.decode(torch.zeros_like(units[:1])).flatten(1)
    matrix = exact.decode(units).flatten(1) - zero
    left = (new.flatten(1) - zero).T
    expected = matrix.T @ torch.linalg.lstsq(matrix.T, left, driver="gelsd").solution
    got = exact.decode(NearestCodes(exact)(new)).flatten(1) - zero
    torch.testing.assert_close(got, expected.T, rtol=1e-6, atol=1e-8)


def test_it_is_nearer_than_the_encoders(representation, fields):
    new = fields[100:]
    nearest = representation.decode(NearestCodes(representation)(new))
    encoded = representation.reconstruct(new)
    assert float((nearest - new).norm()) < float((encoded - new).norm())


def test_it_leaves_no_gradient_behind(representation, fields):
    with torch.no_grad():
        codes = NearestCodes(representation)(fields[:3])
    assert not codes.requires_grad
    assert codes.dtype == torch.float32
