import re
from itertools import product

import pytest

from twoscale import METHODS, TwoscaleError
from twoscale.domain.symmetries import SYMMETRIES
from twoscale.methods.recipes import defaults, every_setting, resolve
from twoscale.methods.settings import parse_assignments, parse_seeds
from twoscale.parts import is_ours
from twoscale.predictors import predictors

COUNT = "a whole number of at least 1"
FRACTION = "a fraction in (0, 1]"
PATCHES = "a count such as 4, or rows x columns such as 4x2"
RATE = "a positive number of at most 10"
TRANSFORM = "one of none, log, reciprocal, or one for each channel such as log,none"


# Predictors in the order in which they are looked through for a setting.
CHOICES = [{}, *({"predictor": name} for name, kind in predictors().items() if is_ours(kind))]


def choice_with(setting):
    """Return a method and a choice of its predictor that have a setting."""
    return next(
        (method, given)
        for method, given in product(METHODS, CHOICES)
        if setting in defaults(method, given)
    )


def resolved(name, value):
    method, given = choice_with(name)
    return resolve(method, {**given, name: value})[name]


GOOD = [
    ("patches", 4, (4, 4)),
    ("patches", "4", (4, 4)),
    ("patches", "4x2", (4, 2)),
    ("patches", "4X2", (4, 2)),
    ("patches", (4, 2), (4, 2)),
    ("patches", [4, 2], (4, 2)),
    ("epochs", "12", 12),
    ("epochs", 12.0, 12),
    ("epochs", "1e2", 100),
    ("hidden_layers", 0, 0),
    ("padding", "0", 0),
    ("learning_rate", "1e-2", 0.01),
    ("weight_decay", 0, 0.0),
    ("input_variance", "0.95", 0.95),
    ("input_transform", "log", "log"),
    ("input_transform", "log, none", ("log", "none")),
    ("input_transform", ["reciprocal"], "reciprocal"),
    ("output_variance", 1, 1.0),
    ("coarse_variance", "none", None),
    ("coarse_variance", None, None),
    ("coarse_variance", "0.99", 0.99),
    ("early_stop", "none", None),
    ("middle_patches", "2x4", (2, 4)),
    ("code_size", "300", 300),
    ("code_size", "none", None),
    ("variance", "0.9", 0.9),
    ("seam_width", "0", 0.0),
    ("early_stop", "15", 15),
    ("solver", "randomised", "randomized"),
    ("solver", "hybrid", "hybrid"),
    ("objective", "score-normalized", "score-normalised"),
    ("objective", "vector", "vector"),
    ("base", "overlap", "overlap"),
    ("objective", "field", "field"),
    ("predictor", "affine-mlp", "affine-mlp"),
    ("symmetries", "square", "square"),
    ("average_symmetries", "true", True),
    ("average_symmetries", False, False),
    ("few_features", "off", False),
    ("ridge", "none", None),
    ("ridge", "1e-7", 1e-7),
    ("ridge", 0, 0.0),
    ("kernel", None, None),
    ("kernel", "matern-3/2", "matern-3/2"),
    ("length_scale", "2", 2.0),
    ("kernel_samples", "4000", 4000),
]


@pytest.mark.parametrize(("name", "value", "expected"), GOOD)
def test_values_are_read(name, value, expected):
    got = resolved(name, value)
    assert got == expected
    assert type(got) is type(expected)


BAD = [
    ("patches", "0", PATCHES),
    ("patches", "4x", PATCHES),
    ("patches", "4x2x1", PATCHES),
    ("patches", "four", PATCHES),
    ("patches", "-4", PATCHES),
    ("patches", 4.5, PATCHES),
    ("patches", None, PATCHES),
    ("patches", True, PATCHES),
    ("patches", [], PATCHES),
    ("patches", [4, "x"], PATCHES),
    ("input_variance", 0, FRACTION),
    ("output_variance", 1.01, FRACTION),
    ("middle_patches", "2x2x2", PATCHES),
    ("middle_variance", "1.5", FRACTION),
    ("residual_variance", "-0.5", FRACTION),
    ("coarse_variance", "99%", FRACTION),
    ("input_variance", "nan", FRACTION),
    ("input_variance", None, FRACTION),
    ("coarse_factor", 0, COUNT),
    ("code_size", "0", COUNT),
    ("variance", "0", FRACTION),
    ("seam_width", -0.1, "a part of the domain's side, 0 to 1"),
    ("coarse_components", 2.5, COUNT),
    ("hidden_width", "wide", COUNT),
    ("hidden_layers", -1, "a whole number of at least 0 and at most 1000"),
    ("epochs", 0, COUNT),
    ("epochs", True, COUNT),
    ("epochs", "inf", COUNT),
    ("epochs", "nan", COUNT),
    ("epochs", None, COUNT),
    ("epochs", [3], COUNT),
    ("batch_size", "0", COUNT),
    ("patience", -3, COUNT),
    ("early_stop", 0, COUNT),
    ("learning_rate", 0, RATE),
    ("learning_rate", -1e-3, RATE),
    ("learning_rate", 11, RATE),
    ("refinement_learning_rate", "fast", RATE),
    ("weight_decay", -1e-4, "a number from 0 to 10"),
    ("refinement_weight_decay", 100, "a number from 0 to 10"),
    ("refinement_epochs", 0, COUNT),
    ("refinement_batch_size", 0, COUNT),
    ("refinement_patience", 0, COUNT),
    ("channels", 0, COUNT),
    ("layers", 0, f"{COUNT} and at most 1000"),
    ("width", 0, COUNT),
    ("modes", 0, COUNT),
    ("padding", -1, "a whole number of at least 0"),
    ("evaluation_batch", 0, COUNT),
    ("solver", "svd", "one of full, covariance, randomized, hybrid"),
    ("objective", "mse", "one of vector, block-balanced, score-normalised, field"),
    ("predictor", "forest", "one of affine, affine-mlp, encoder, filter, fno, kernel, mlp"),
    ("blocks", 0, f"{COUNT} and at most 1000"),
    ("cycles", 0, f"{COUNT} and at most 100"),
    ("members", 0, f"{COUNT} and at most 100"),
    ("cut", 0, COUNT),
    ("clip", 0, "a positive number of at most a million"),
    ("optimiser", "sgd", "one of muon, adam"),
    ("symmetries", "cube", f"one of {', '.join(SYMMETRIES)}, problem"),
    ("input_transform", "root", TRANSFORM),
    ("input_transform", "log,", TRANSFORM),
    ("input_transform", 2, TRANSFORM),
    ("average_symmetries", 2, "true or false"),
    ("few_features", "maybe", "true or false"),
    ("ridge", -1, "a fraction from 0 to 1"),
    ("ridge", "nan", "a fraction from 0 to 1"),
    ("kernel", "gauss", "one of matern-5/2, matern-3/2"),
    ("length_scale", 0, "a positive number of at most a million"),
    ("kernel_samples", 0, COUNT),
    ("base", "fno", "one of global, local, overlap, two-scale, three-scale, conforming"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), BAD)
def test_bad_values_are_told_with_what_would_be_right(name, value, wanted):
    message = re.escape(f"{name} must be {wanted}, got '{value}'")
    with pytest.raises(TwoscaleError, match=message):
        resolved(name, value)


def test_every_setting_has_a_bad_value_above():
    assert {name for name, _, _ in BAD} == set(every_setting())


@pytest.mark.parametrize(
    ("method", "name", "close"),
    [
        ("two-scale", "coarse_factr", "coarse_factor"),
        ("local", "epoch", "epochs"),
        ("fno", "mode", "modes"),
        ("global", "learning-rate", "learning_rate"),
    ],
)
def test_an_unknown_name_is_met_with_the_close_one(method, name, close):
    message = f"method {method} has no setting '{name}' (did you mean {close}?)"
    with pytest.raises(TwoscaleError, match=re.escape(message)):
        resolve(method, {name: 1})


def test_an_unknown_name_is_met_with_all_there_are():
    with pytest.raises(
        TwoscaleError, match=r"no setting 'zzz': it has average_symmetries, .*, epochs, .*va"
    ):
        resolve("local", {"zzz": 1})


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("global", {"coarse_factor": 4}, "'coarse_factor' (it belongs to two-scale, three-scale)"),
        (
            "refinement",
            {"code_size": 9},
            "'code_size' (it belongs to base=global, base=two-scale, base=",
        ),
        ("two-scale", {"cut": 2, "width": 9}, "'cut' (it belongs to predictor=encoder)"),
        ("two-scale", {"modes": 4}, "'modes' (it belongs to predictor=fno)"),
        (
            "fno",
            {"ridge": 1e-3},
            "'ridge' (it belongs to predictor=affine, predictor=affine-mlp, predictor=kernel)",
        ),
        ("local", {"channels": 4}, "'channels' (it belongs to refinement)"),
        ("local", {"refinement_epochs": 4}, "'refinement_epochs' (it belongs to refinement)"),
    ],
)
def test_a_setting_of_others_is_met_with_those_that_have_it(method, given, message):
    whole = f"method {method} has no setting {message}"
    with pytest.raises(TwoscaleError, match=f"{re.escape(whole)}.*: it has .*epochs"):
        resolve(method, given)


def test_what_a_choice_takes_away_is_met_with_the_choice():
    known = (
        "method two-scale with predictor=encoder has no setting 'input_variance' (it belongs to "
    )
    known += "predictor=affine, predictor=affine-mlp, predictor=kernel, predictor=mlp): it has"
    with pytest.raises(TwoscaleError, match=re.escape(known)):
        resolve("two-scale", {"predictor": "encoder", "input_variance": 0.9})
    known = r"method refinement with base=two-scale has no setting 'output_variance' \(it belongs "
    with pytest.raises(TwoscaleError, match=known + "to base=global, base=local"):
        resolve("refinement", {"base": "two-scale", "output_variance": 0.9})


@pytest.mark.parametrize("method", METHODS)
def test_every_default_is_a_legal_value(method):
    defaults = resolve(method, {})
    assert resolve(method, defaults) == defaults


def test_every_setting_says_what_it_means():
    assert all(setting.meaning for setting in every_setting().values())


def test_assignments():
    assert parse_assignments(["epochs=5", "patches = 4x2", "learning-rate=1e-3", "a=b=c"]) == {
        "epochs": "5",
        "patches": "4x2",
        "learning_rate": "1e-3",
        "a": "b=c",
    }


@pytest.mark.parametrize("text", ["epochs", "=5", "epochs=", ""])
def test_what_is_no_assignment_is_refused(text):
    with pytest.raises(TwoscaleError, match=f"a setting is written key=value, got '{text}'"):
        parse_assignments([text])


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("3", [3]),
        ("0-4", [0, 1, 2, 3, 4]),
        ("0,3,7", [0, 3, 7]),
        ("7,3", [7, 3]),
        ("5-5", [5]),
        (" 0 , 2-3 ", [0, 2, 3]),
        ("0-2,1-3,2", [0, 1, 2, 3]),
        ("0-999", list(range(1000))),
    ],
)
def test_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "one", "-1", "0-", "0-1-2", "0,", "1.5", "0 - 3", "²"])
def test_what_is_no_list_of_seeds_is_refused(text):
    message = f"seeds are given like 0-4 or 0,3,7, got '{text}'"
    with pytest.raises(TwoscaleError, match=re.escape(message)):
        parse_seeds(text)


def test_no_seeds_and_too_many_are_refused():
    with pytest.raises(TwoscaleError, match="seeds are given like 0-4 or 0,3,7, got '5-3'"):
        parse_seeds("5-3")
    with pytest.raises(TwoscaleError, match="'0-1000' names more than a thousand seeds"):
        parse_seeds("0-1000")
