from dataclasses import replace

import pytest

from tests.search.fake import space_of
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import resolve
from twoscale.search.neighbours import (
    less_input,
    longer_codes,
    longer_training,
    more_data,
    more_input,
    more_members,
    other_predictors,
    steps,
    whole_field_predictors,
)
from twoscale.search.space import INPUT_VARIANCES, Candidate, SearchSpace
from twoscale.search.trials import Outcome, Search, Trial


def test_a_given_predictor_is_the_only_one():
    space = space_of((16, 16), 100, given={"predictor": "affine"})
    assert list(other_predictors(space, space.first)) == []
    assert space_of((16, 16), 100, given={"predictor": "kernel"}).first.predictor == "kernel"


def test_neighbours_are_a_step_away():
    space, first = space_of((16, 16), 2000, "square"), Candidate()
    assert [one.input_variance for one in more_input(space, first)] == [0.99]
    assert list(less_input(space, first)) == []
    kernel = replace(first, predictor="kernel", samples=1000)
    assert [one.input_variance for one in more_input(space, kernel)] == [0.97]
    assert [one.input_variance for one in less_input(space, kernel)] == [0.9]
    more = list(more_data(space, kernel, (("ridge", 0.1),)))
    assert {(one.samples, one.symmetries) for one in more} == {
        (None, "none"),
        (1000, "square"),
        (None, "square"),
    }
    assert all(one.tuned == (("ridge", 0.1),) for one in more)


def test_a_function_of_the_input_is_tried_before_other_predictors():
    space, first = space_of((16, 16), 100, transforms=("log",)), Candidate()
    found = Search(10.0, [Trial(first, "cheapest", None, 1.0, known(20))])
    reasons = [step.reason for step in steps(found, space)]
    assert "log of input" in reasons
    assert "predictor" not in reasons
    logs = replace(first, transform="log")
    found.trials.append(Trial(logs, "log of input", 1.0, 1.0, replace(known(20, 1e-3), error=0.01)))
    later = list(steps(found, space))
    assert {step.candidate.transform for step in later} == {"log"}
    assert {"predictor", "+ input"} <= {step.reason for step in later}
    assert "log of input" not in {step.reason for step in later}


def test_parameters_alone_are_seen_as_a_whole():
    space = SearchSpace(Space(Grid((1, 1)), 0, parameters=3), Space(Grid((16, 16))), 2000)
    assert list(more_input(space, Candidate())) == []
    assert list(less_input(space, Candidate(predictor="kernel"))) == []
    beside = SearchSpace(Space(Grid((16, 16)), 1, parameters=3), Space(Grid((16, 16))), 2000)
    assert len(list(more_input(beside, Candidate()))) == 1


def known(output_code, oracle=0.01):
    return Outcome(0.02, 0.02, oracle, 50, output_code)


def longer(space, best, output_code, lengths=None, **options):
    """Return the candidates of longer codes by their chain."""
    outcome = known(output_code, **options)
    return {one.chain: one for one in longer_codes(space, best, outcome, lengths or {})}


def test_longer_codes_of_all_chains():
    found = longer(space_of((16, 16), 2000), Candidate(), 90)
    assert {chain: (one.code, one.size) for chain, one in found.items()} == {
        "two-scale": (1, None),
        "conforming": (0, 90),
        "three-scale": (0, 90),
        "global": (0, 90),
    }


def test_a_code_that_does_not_reach_its_size_is_not_asked_to_be_longer():
    cut = Candidate(chain="global", size=200)
    assert "global" not in longer(space_of((16, 16), 100), cut, 99)


def test_a_conforming_code_grows_up_to_all_nodes():
    space = space_of((32, 32), 2000)
    first = Candidate(chain="conforming", size=320)
    second = longer(space, first, 320)["conforming"]
    assert second.size == 640
    assert longer(space, second, 640)["conforming"].size == 1024


def test_another_chain_is_no_step_back():
    """From 320 two-scale modes to 640 conforming ones: not to the 320 again, under any input."""
    space, lengths = space_of((32, 32), 2000), {("two-scale", 0): 320}
    best = longer(space, Candidate(chain="conforming", size=320), 320)["conforming"]
    assert longer(space, best, 640, lengths)["two-scale"].code == 1
    assert longer(space, best, 640, lengths | {("two-scale", 1): 500})["two-scale"].code == 2
    short = {("two-scale", code): 300 for code in range(4)}
    assert "two-scale" not in longer(space, best, 640, short)


@pytest.mark.parametrize(
    ("given", "chains"),
    [
        ({"code_size": 50}, {"conforming", "three-scale", "global"}),
        ({"code_size": "none"}, {"conforming", "three-scale", "global"}),
        ({"variance": 0.9}, set()),
        ({"output_variance": 0.9}, set()),
    ],
)
def test_a_code_that_is_given_stays_as_it_is(given, chains):
    space = space_of((16, 16), 2000, given=given)
    best = Candidate(chain=space.chains[0])
    found = longer(space, best, 50)
    assert found.keys() == chains
    for one in (best, *found.values()):
        chosen = resolve(one.chain, space.settings(one))
        assert all(chosen[name] == resolve(one.chain, given)[name] for name in given)


def test_a_long_training_has_a_longer_code():
    space, probe = space_of((16, 16), 2000), Candidate(predictor="encoder", epochs=3)
    (trained,) = longer_training(space, probe, Candidate(code=1, predictor="kernel"), 50)
    assert (trained.predictor, trained.code, trained.epochs) == ("encoder", 2, 50)
    (last,) = longer_training(space, probe, Candidate(chain="conforming", size=200, code=3), 50)
    assert (last.chain, last.size, last.code) == ("conforming", 256, 3)


def test_the_ends_have_no_neighbours_beyond():
    last = Candidate(input_variance=INPUT_VARIANCES[-1], code=3)
    assert list(more_input(space_of((16, 16), 100), last)) == []
    space = space_of((16, 16), 100, given={"coarse_components": 5, "seam_width": 0.1})
    with pytest.raises(TwoscaleError, match="no method that is searched has all"):
        list(longer_codes(space, last, known(90), {}))
    alone = space_of((16, 16), 100, given={"output_variance": 0.9})
    assert list(longer_codes(alone, replace(last, chain="global"), known(90), {})) == []
    whole = Candidate(chain="conforming", size=256)
    assert "conforming" not in longer(space_of((16, 16), 100), whole, 256)


def whole_fields(space, best):
    """Return the candidates that read fields by their predictor."""
    return {one.predictor: one for one in whole_field_predictors(space, best)}


def test_an_encoder_is_small_and_first_trained_shortly_on_a_cpu():
    sizes = []
    for accelerated in (False, True):
        space = space_of((64, 64), 1600, accelerated=accelerated)
        one = whole_fields(space, Candidate(predictor="kernel"))["encoder"]
        sizes.append((one.epochs, space.settings(one)["width"]))
    assert sizes == [(3, 24), (10, 64)]


def test_fields_that_are_stored_are_not_for_an_encoder():
    kernel = Candidate(predictor="kernel")
    assert list(whole_field_predictors(space_of((64, 64), 1600), kernel))
    assert list(whole_field_predictors(space_of((64, 64), 1600, stored=True), kernel)) == []


def test_predictors_that_read_fields_learn_whole_fields_unless_a_code_is_asked_for():
    best = Candidate(predictor="kernel", code=2)
    found = whole_fields(space_of((64, 64), 1600, "square"), best)
    assert {one.chain for one in found.values()} == {"whole-field"}
    assert {name: one.symmetries for name, one in found.items()} == {
        "filter": "none",
        "encoder": "square",
    }
    given = space_of((64, 64), 1600, given={"coarse_components": 20})
    assert {(one.chain, one.code) for one in whole_fields(given, best).values()} == {
        ("two-scale", 2)
    }
    after = whole_fields(space_of((64, 64), 1600), found["encoder"])
    assert after.keys() == {"fno"}


def test_from_a_filter_the_search_goes_on_with_the_best_other_candidate():
    """A filter has no code, and nothing comes after it; the codes may still win."""
    space, first = space_of((64, 64), 1600, "square"), Candidate()
    other = Trial(first, "cheapest", None, 1.0, replace(known(20), training_error=0.01))
    before = {step.candidate for step in steps(Search(10.0, [other]), space)}
    one = space.reading_fields(first, "filter")
    assert one in before
    best = Trial(one, "predictor", 1.0, 1.0, Outcome(0.01, 0.001, 0.0, 4096, 4096))
    after = {step.candidate for step in steps(Search(10.0, [other, best]), space)}
    assert after == before - {one} | {replace(one, symmetries="square")}


def test_images_of_whole_fields_that_would_fill_the_memory_are_not_made():
    for accelerated in (False, True):
        space = space_of((421, 421), 1000, "square", accelerated=accelerated)
        one = whole_fields(space, Candidate())["encoder"]
        assert one.symmetries == ("square" if accelerated else "none")
        (turned, _) = more_data(space, Candidate(chain="whole-field", predictor="filter"), ())
        assert turned.symmetries == one.symmetries


def test_networks_are_averaged_after_the_longest_training(monkeypatch):
    space = space_of((16, 16), 2000)
    trained = Candidate(chain="whole-field", predictor="encoder", epochs=300)
    known = SearchSpace._settings_of
    monkeypatch.setattr(SearchSpace, "_settings_of", lambda *a: known(*a) - {"members"})
    assert list(more_members(space, trained, 9.0)) == [], "without the setting"
    monkeypatch.undo()
    (two,) = more_members(space, trained, 2.7)
    assert (two.members, two.label) == (2, "whole-field encoder(300) x2")
    assert space.settings(two)["members"] == 2
    assert [one.members for one in more_members(space, two, 9.0)] == [4]
    assert list(more_members(space, two, 1.2)) == []
    assert list(more_members(space, replace(trained, epochs=200), 9.0)) == [], "a longer one first"
