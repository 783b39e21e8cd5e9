from dataclasses import replace

import pytest

from tests.search.fake import space_of
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import assemble, defaults, resolve
from twoscale.predictors import get_predictor
from twoscale.search.space import FIRST_CHAIN, Candidate, SearchSpace, searched_predictors
from twoscale.surrogate import Surrogate

SHAPES = [(64, 64), (8, 8), (256, 128), (17, 19), (61, 61), (24, 36), (1, 64), (30, 200), (3, 3)]


def check_candidates(space):
    """Build a candidate of every chain and check it on the spaces."""
    assert space.chains[0] == FIRST_CHAIN
    for chain in space.chains:
        settings = resolve(chain, space.settings(Candidate(chain=chain)))
        operator = assemble(chain, settings).operator()
        operator.check(space.inputs, space.outputs, space.samples)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_grid_has_candidates_that_can_be_built(shape, channels):
    check_candidates(space_of(shape, 100, channels=channels))


@pytest.mark.parametrize("shape", [(1, 1), (6, 64), (128, 128), (1, 200)])
@pytest.mark.parametrize("parameters", [0, 2])
def test_inputs_may_have_a_grid_of_their_own(shape, parameters):
    inputs = Space(Grid(shape), 1 + parameters, parameters=parameters)
    check_candidates(SearchSpace(inputs, Space(Grid((48, 48)), 2), 100))


def test_large_blocks_of_either_side_are_not_decomposed():
    fine, rough = Space(Grid((512, 512))), Space(Grid((16, 16)))
    assert SearchSpace(rough, rough, 100).solver(FIRST_CHAIN) == "covariance"
    assert SearchSpace(fine, rough, 100).solver(FIRST_CHAIN) == "randomized"
    assert SearchSpace(fine, fine, 100).solver(FIRST_CHAIN) == "covariance"
    many = Space(Grid((64, 64)), 4)
    assert SearchSpace(many, many, 100).solver(FIRST_CHAIN) == "randomized"


def test_large_fields_are_searched_in_patches_only():
    small, large = Space(Grid((64, 64))), Space(Grid((64, 64)), 2)
    assert "global" in SearchSpace(small, small, 100).chains
    assert "global" not in SearchSpace(small, large, 100).chains
    assert "global" not in SearchSpace(large, small, 100).chains


def test_what_predictors_say_of_their_cost_exists():
    known = searched_predictors()
    for name, cost in known.items():
        assert set(cost.after) <= known.keys()
        settings = {cost.samples_setting, *cost.tuned, *cost.settings} - {""}
        assert settings <= defaults(FIRST_CHAIN, {"predictor": name}).keys()
        traits = get_predictor(name)
        assert bool(cost.probe) == (traits.reads_fields and not traits.closed_form)


def test_patches_are_four_or_of_a_size_that_is_cheap():
    assert space_of((64, 64), 100).patches == (4, 4)
    assert space_of((256, 128), 100).patches == (8, 4)
    assert space_of((64, 64), 100, given={"patches": "2x8"}).patches == (2, 8)
    assert space_of((61, 60), 100).patches == (5, 4)  # patches that can be mirrored
    assert space_of((1, 64), 100).patches == (1, 4)


def test_given_settings_are_in_all_candidates():
    space = space_of((16, 16), 100, "square", given={"ridge": "1e-6", "symmetries": "square"})
    for candidate in (space.first, replace(space.first, predictor="kernel")):
        assert space.settings(candidate)["ridge"] == "1e-6"
        assert space.settings(candidate)["symmetries"] == "none", "declared, not imposed"


def test_predictors_of_codes_leave_out_settings_that_they_lack():
    space = space_of((16, 16), 100, given={"epochs": 7, "hidden_width": 9})
    assert space.first.predictor == "affine"
    assert "epochs" not in space.settings(space.first)
    network = space.settings(replace(space.first, predictor="affine-mlp"))
    assert (network["epochs"], network["hidden_width"]) == (7, 9)
    assert not space.takes("encoder", FIRST_CHAIN), "it has no hidden_width"
    assert space_of((16, 16), 100, given={"epochs": 7}).takes("encoder", FIRST_CHAIN)


def test_given_settings_leave_out_methods_that_lack_them():
    assert space_of((16, 16), 100, given={"seam_width": 0.1}).chains == ["conforming"]
    assert space_of((16, 16), 100, given={"middle_variance": 0.9}).chains == ["three-scale"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epoch": 3}, "no setting 'epoch'.*did you mean epochs"),
        ({"predictor": "encoder", "ridge": 0.1}, "no setting 'ridge'"),
        ({"predictor": "affine", "epochs": 3}, "no setting 'epochs'"),
        ({"width": 8}, "no setting 'width'.*belongs to predictor=encoder"),
        ({"seam_width": 0.1, "output_variance": 0.9}, "has all of output_variance, seam_width"),
    ],
)
def test_settings_no_candidate_has(given, words):
    with pytest.raises(TwoscaleError, match=words):
        _ = space_of((16, 16), 100, given=given).first


def test_a_filter_is_for_fields_on_one_grid_only():
    field, parameters = Space(Grid((16, 16))), Space(Grid((1, 1)), 0, parameters=2)
    assert space_of((16, 16), 100).takes("filter", FIRST_CHAIN)
    for inputs in (Space(Grid((16, 8))), parameters):
        space = SearchSpace(inputs, field, 100)
        assert not space.takes("filter", FIRST_CHAIN)
        assert space.takes("encoder", FIRST_CHAIN)
    assert not space_of((16, 16), 100, given={"ridge": 0.1}).takes("filter", FIRST_CHAIN)


def test_a_filter_that_was_asked_for_is_the_first_on_whole_fields():
    first = space_of((16, 16), 100, "square", {"predictor": "filter"}).first
    assert (first.chain, first.symmetries, first.epochs) == ("whole-field", "none", None)
    assert first.reads_fields
    assert not first.probed


def test_candidates_that_are_fitted_alike_are_one():
    space = space_of((16, 16), 100, given={"input_variance": 0.98})
    other = replace(space.first, input_variance=0.99)
    assert space.identity(space.first) == space.identity(other)
    free = space_of((16, 16), 100)
    assert free.identity(free.first) != free.identity(other)


def test_an_encoder_starts_with_a_short_training_on_all_images():
    space = space_of((64, 64), 1600, "square", {"predictor": "encoder", "width": 8})
    first = space.first
    assert (first.predictor, first.symmetries, first.epochs) == ("encoder", "square", 2)
    settings = space.settings(first)
    assert settings["epochs"] == 2
    assert settings["width"] == 8
    assert "input_variance" not in settings
    Surrogate(first.chain, **settings)  # all of them are settings of the method
