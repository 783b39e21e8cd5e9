import torch

from tests.surrogate.linear import LinearDecoder
from twoscale import Surrogate
from twoscale.representation import geometry
from twoscale.representation.geometry import decoder_isometry, one_isometry


def decoder():
    return LinearDecoder(torch.randn(3, 7, generator=torch.Generator().manual_seed(9)))


def test_it_is_computed_once_inside_and_forgotten_outside():
    one = decoder()
    with one_isometry(one):
        first = decoder_isometry(one)
        assert decoder_isometry(one) is first
        assert decoder_isometry(decoder()) is not first
    again = decoder_isometry(one)
    assert again is not first
    torch.testing.assert_close(again.forth, first.forth)
    assert geometry._REMEMBERED == {}


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
