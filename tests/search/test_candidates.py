from dataclasses import replace

import pytest

from tests.search.fake import space_of
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.methods.recipes import get_method, resolve
from twoscale.search.candidates import Candidate
from twoscale.surrogate import Surrogate


@pytest.mark.parametrize("shape", [(64, 64), (8, 8), (256, 128), (17, 19), (61, 61), (24, 36)])
def test_every_grid_has_candidates_that_can_be_built(shape):
    space = space_of(shape, 100)
    assert "two-scale" in space.chains
    for chain in space.chains:
        settings = resolve(chain, space.settings(Candidate(chain=chain)))
        get_method(chain).build(Grid(*shape), settings).check(shape, 100)


def test_patches_are_four_or_of_a_size_that_is_cheap():
    assert space_of((64, 64), 100).patches == (4, 4)
    assert space_of((256, 128), 100).patches == (8, 4)
    assert space_of((64, 64), 100, given={"patches": "2x8"}).patches == (2, 8)


def test_given_settings_are_in_all_candidates():
    space = space_of((16, 16), 100, "square", given={"ridge": "1e-6", "symmetries": "square"})
    for candidate in (space.first, replace(space.first, predictor="kernel")):
        assert space.settings(candidate)["ridge"] == "1e-6"
        assert space.settings(candidate)["symmetries"] == "none", "declared, not imposed"


def test_given_settings_leave_out_methods_that_lack_them():
    assert space_of((16, 16), 100, given={"seam_width": 0.1}).chains == ["conforming"]
    assert space_of((16, 16), 100, given={"residual_variance": 0.9}).chains == ["two-scale"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epoch": 3}, "no setting 'epoch'.*did you mean epochs"),
        ({"predictor": "encoder", "ridge": 0.1}, "no setting 'ridge'"),
        ({"seam_width": 0.1, "output_variance": 0.9}, "has all of output_variance, seam_width"),
    ],
)
def test_settings_no_candidate_has(given, words):
    with pytest.raises(TwoscaleError, match=words):
        _ = space_of((16, 16), 100, given=given).first


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
