from dataclasses import replace

from twoscale.search.candidates import INPUT_VARIANCES, Candidate, Space
from twoscale.search.neighbours import (
    less_input,
    longer_codes,
    more_data,
    more_input,
    other_predictors,
)
from twoscale.surrogate.methods import METHODS, resolve


def test_a_given_predictor_is_the_only_one():
    space = Space((16, 16), 100, given={"predictor": "affine"})
    assert list(other_predictors(space, space.first)) == []
    assert Space((16, 16), 100, given={"predictor": "kernel"}).first.predictor == "kernel"


def test_neighbours_are_a_step_away():
    space, first = Space((16, 16), 2000, "square"), Candidate()
    assert [one.code for one in longer_codes(space, first, 90) if one.chain == "two-scale"] == [1]
    assert [one.size for one in longer_codes(space, first, 90) if one.chain == "conforming"] == [90]
    assert [one.input_variance for one in more_input(first)] == [0.99]
    assert list(less_input(first)) == []
    kernel = replace(first, predictor="kernel", samples=1000)
    assert [one.input_variance for one in more_input(kernel)] == [0.97]
    assert [one.input_variance for one in less_input(kernel)] == [0.9]
    more = list(more_data(space, kernel, (("ridge", 0.1),)))
    assert {(one.samples, one.symmetries) for one in more} == {
        (None, "none"),
        (1000, "square"),
        (None, "square"),
    }
    assert all(one.tuned == (("ridge", 0.1),) for one in more)


def test_the_ends_have_no_neighbours_beyond():
    last = Candidate(input_variance=INPUT_VARIANCES[-1], code=3)
    assert list(more_input(last)) == []
    space = Space((16, 16), 100, given={"coarse_components": 5})
    assert list(longer_codes(space, last, 90)) == []
    whole = Candidate(chain="conforming", size=200)
    assert [one.chain for one in longer_codes(Space((16, 16), 100), whole, 200)] == [
        "two-scale",
        "global",
    ]


def test_all_predictors_are_known_to_the_methods():
    space = Space((16, 16), 2000)
    for one in other_predictors(space, space.first):
        assert resolve("two-scale", space.settings(one))["predictor"] == one.predictor
    assert all("predictor" in METHODS[chain].defaults for chain in space.chains)


def test_an_encoder_is_small_and_first_trained_shortly_on_a_cpu():
    sizes = []
    for accelerated in (False, True):
        space = Space((64, 64), 1600, accelerated=accelerated)
        (one,) = other_predictors(space, Candidate(predictor="kernel"))
        sizes.append((one.epochs, space.settings(one)["width"]))
    assert sizes == [(3, 24), (10, 64)]
