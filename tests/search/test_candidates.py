from dataclasses import replace

import pytest

from twoscale.errors import TwoscaleError
from twoscale.grid import Grid
from twoscale.search.candidates import (
    INPUT_VARIANCES,
    Candidate,
    Space,
    less_input,
    longer_codes,
    more_data,
    more_input,
    other_predictors,
)
from twoscale.surrogate import Surrogate
from twoscale.surrogate.methods import METHODS, get_method, resolve


@pytest.mark.parametrize("shape", [(64, 64), (8, 8), (256, 128), (17, 19), (61, 61), (24, 36)])
def test_every_grid_has_candidates_that_can_be_built(shape):
    space = Space(shape, 100)
    assert "two-scale" in space.chains
    for chain in space.chains:
        settings = resolve(chain, space.settings(Candidate(chain=chain)))
        get_method(chain).build(Grid(*shape), settings).check(shape, 100)


def test_patches_are_four_or_of_a_size_that_is_cheap():
    assert Space((64, 64), 100).patches == (4, 4)
    assert Space((256, 128), 100).patches == (8, 4)
    assert Space((64, 64), 100, given={"patches": "2x8"}).patches == (2, 8)


def test_given_settings_are_in_all_candidates():
    space = Space((16, 16), 100, "square", given={"ridge": "1e-6", "symmetries": "square"})
    for candidate in (space.first, replace(space.first, predictor="kernel")):
        assert space.settings(candidate)["ridge"] == "1e-6"
        assert space.settings(candidate)["symmetries"] == "none", "declared, not imposed"


def test_given_settings_leave_out_methods_that_lack_them():
    assert Space((16, 16), 100, given={"code_size": 50}).chains == ["conforming"]
    assert Space((16, 16), 100, given={"residual_variance": 0.9}).chains == ["two-scale"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epoch": 3}, "no setting 'epoch'.*did you mean epochs"),
        ({"predictor": "encoder", "ridge": 0.1}, "no setting 'ridge'"),
        ({"code_size": 5, "output_variance": 0.9}, "has all of code_size, output_variance"),
    ],
)
def test_settings_no_candidate_has(given, words):
    with pytest.raises(TwoscaleError, match=words):
        _ = Space((16, 16), 100, given=given).first


def test_a_given_predictor_is_the_only_one():
    space = Space((16, 16), 100, given={"predictor": "affine"})
    assert list(other_predictors(space, space.first)) == []
    assert Space((16, 16), 100, given={"predictor": "kernel"}).first.predictor == "kernel"


def test_candidates_that_are_fitted_alike_are_one():
    space = Space((16, 16), 100, given={"input_variance": 0.98})
    other = replace(space.first, input_variance=0.99)
    assert space.identity(space.first) == space.identity(other)
    free = Space((16, 16), 100)
    assert free.identity(free.first) != free.identity(other)


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


def test_an_encoder_starts_with_a_short_training_on_all_images():
    space = Space((64, 64), 1600, "square", {"predictor": "encoder", "width": 8})
    first = space.first
    assert (first.predictor, first.symmetries, first.epochs) == ("encoder", "square", 3)
    settings = space.settings(first)
    assert settings["epochs"] == 3
    assert settings["width"] == 8
    assert "input_variance" not in settings
    Surrogate(first.chain, **settings)  # all of them are settings of the method


def test_an_encoder_is_small_and_first_trained_shortly_on_a_cpu():
    sizes = []
    for accelerated in (False, True):
        space = Space((64, 64), 1600, accelerated=accelerated)
        (one,) = other_predictors(space, Candidate(predictor="kernel"))
        sizes.append((one.epochs, space.settings(one)["width"]))
    assert sizes == [(3, 24), (10, 64)]
