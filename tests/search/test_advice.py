"""What is suggested against an error."""

from dataclasses import replace

import pytest

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.methods.recipes import METHODS, resolve
from twoscale.search.advice import Findings, advise, error_shares, shares_text

PLAIN = Findings(
    error=0.05,
    training_error=0.05,
    oracle=0.001,
    method="two-scale",
    settings=resolve("two-scale", {}),
    inputs=Space(Grid((16, 16))),
    outputs=Space(Grid((16, 16))),
    output_code=20,
)


def told(**changes):
    return " ".join(one.text for one in advise(replace(PLAIN, **changes)))


def test_without_an_error_on_training_fields_no_samples_are_asked_for():
    assert "More samples" not in told(training_error=None)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gets_advice_against_every_cause(method):
    """With settings that the method has, and that differ from its own."""
    settings = resolve(method, {})
    causes = [(0.05, 0.05), (0.001, 0.001), (0.05, 0.001)]  # oracle, training error
    for oracle, training in causes:
        found = replace(
            PLAIN, method=method, settings=settings, oracle=oracle, training_error=training
        )
        suggestions = advise(found)
        assert suggestions
        for one in suggestions:
            changed = resolve(method, settings | dict(one.settings))
            assert not one.settings or changed != settings


def test_a_search_is_suggested_once_to_those_who_did_not_search():
    for training in (0.05, 0.001):
        found = advise(replace(PLAIN, training_error=training))
        assert sum(one.search for one in found) == 1
    assert "a search" not in told(searched=True).lower()
    assert "A longer budget may help." in told(searched=True, short_of_time=True)


@pytest.mark.parametrize(
    ("method", "predictor", "tried", "words"),
    [
        ("two-scale", "affine", ["affine", "filter"], "A nonlinear predictor would help, or a"),
        ("two-scale", "affine", ["affine", "kernel"], "A longer input code would help: nonlinear"),
        ("whole-field", "filter", ["affine", "filter"], "A nonlinear predictor would help."),
        ("whole-field", "filter", ["filter", "kernel"], "A larger network would help"),
        ("two-scale", "kernel", ["affine", "kernel"], "A larger network would help"),
    ],
)
def test_after_a_search_other_predictors_are_named(method, predictor, tried, words):
    settings = resolve(method, {"predictor": predictor})
    assert words in told(method=method, settings=settings, searched=True, tried_predictors=tried)


def test_a_loss_that_still_falls_asks_for_epochs():
    assert "still falling at the end (40 epochs)" in told(epochs=(39, 40))
    assert "still falling" not in told(epochs=(20, 40))
    (longer,) = (one for one in advise(replace(PLAIN, epochs=(39, 40))) if "epochs" in one.settings)
    assert int(longer.settings["epochs"]) == 2 * PLAIN.settings["epochs"]


def test_known_symmetries_are_named_and_used_ones_are_not():
    overfitted = {"training_error": 0.001}
    assert "with symmetries=problem each sample counts as 8" in told(
        known_symmetries="square", **overfitted
    )
    assert "symmetries" not in told(symmetries="problem", known_symmetries="square", **overfitted)


def test_seams_are_smoothed_by_what_the_method_allows():
    rough = {"seam_ratio": 2.0, "searched": True}
    (tuned,) = (one for one in advise(replace(PLAIN, tunable=True, **rough)) if one.objective)
    assert "2.0 times as large at patch borders" in tuned.text
    assert "fine-tune" not in told(**rough)
    assert "conforming" in told(**rough)
    assert "patch borders" not in told(method="conforming", **rough)
    assert "patch borders" not in told(seam_ratio=1.2)


def test_samples_and_channels_to_look_at():
    assert "look at samples 7, 3 first" in told(outliers=[7, 3])
    text = told(channels={"u": 0.01, "v": 0.05})
    assert "Channel v has an error of 5 %, channel u one of 1 %" in text
    assert "Channel" not in told(channels={"u": 0.04, "v": 0.05})
    assert "Only 12 samples were tested" in told(tested=12)


def test_ends_of_the_scale():
    assert "nothing is left to do" in told(error=1e-7)
    assert "no better than fields of zeros" in told(error=1.2)


# Which share of an error has which cause


@pytest.mark.parametrize("training", [None, 0.0, 0.03, 0.2])
@pytest.mark.parametrize("oracle", [None, 0.0, 0.04, 0.1])
def test_shares_add_up_to_one(training, oracle):
    shares = error_shares(0.05, training, oracle)
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0


def test_shares_are_told_largest_first():
    text = shares_text({"representation": 0.1, "data": 0.7, "predictor": 0.2})
    assert (
        text.index("data 70 %") < text.index("predictor 20 %") < text.index("representation 10 %")
    )


def test_without_an_error_on_training_fields_no_overfitting_is_claimed():
    assert error_shares(0.05, None, 0.03)["data"] == 0
