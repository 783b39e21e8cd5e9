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
    ("patches", "4", (4, 4)),
    ("patches", "4X2", (4, 2)),
    ("patches", [4, 2], (4, 2)),
    ("epochs", 12.0, 12),
    ("epochs", "1e2", 100),
    ("hidden_layers", 0, 0),
    ("learning_rate", "1e-2", 0.01),
    ("weight_decay", 0, 0.0),
    ("input_transform", "log, none", ("log", "none")),
    ("input_transform", ["reciprocal"], "reciprocal"),
    ("coarse_variance", "none", None),
    ("coarse_variance", None, None),
    ("coarse_variance", "0.99", 0.99),
    ("code_size", "none", None),
    ("early_stop", "15", 15),
    ("solver", "randomised", "randomized"),
    ("objective", "score-normalized", "score-normalised"),
    ("base", "overlap", "overlap"),
    ("predictor", "affine-mlp", "affine-mlp"),
    ("average_symmetries", "true", True),
    ("few_features", "off", False),
    ("ridge", 0, 0.0),
    ("kernel", None, None),
    ("kernel", "matern-3/2", "matern-3/2"),
]


@pytest.mark.parametrize(("name", "value", "expected"), GOOD)
def test_values_are_read(name, value, expected):
    got = resolved(name, value)
    assert got == expected
    assert type(got) is type(expected)


BAD = [
    *(("patches", value, PATCHES) for value in ("0", "4x", "4x2x1", "four", 4.5, None, True, [])),
    *(("input_variance", value, FRACTION) for value in (0, "1.01", "99%", "nan", None)),
    *(("epochs", value, COUNT) for value in (0, True, "inf", "nan", None, [3], 2.5, "wide")),
    ("hidden_layers", -1, "a whole number of at least 0 and at most 1000"),
    ("layers", 0, f"{COUNT} and at most 1000"),
    *(("learning_rate", value, RATE) for value in (0, -1e-3, 11)),
    ("refinement_learning_rate", "fast", RATE),
    ("weight_decay", -1e-4, "a number from 0 to 10"),
    ("seam_width", -0.1, "a part of the domain's side, 0 to 1"),
    ("clip", 0, "a positive number of at most a million"),
    ("ridge", "nan", "a fraction from 0 to 1"),
    ("solver", "svd", "one of full, covariance, randomized, hybrid"),
    ("predictor", "forest", "one of affine, affine-mlp, encoder, filter, fno, kernel, mlp"),
    ("symmetries", "cube", f"one of {', '.join(SYMMETRIES)}, problem"),
    ("input_transform", "log,", TRANSFORM),
    ("input_transform", 2, TRANSFORM),
    ("average_symmetries", 2, "true or false"),
    ("base", "fno", "one of global, local, overlap, two-scale, three-scale, conforming"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), BAD)
def test_bad_values_are_told_with_what_would_be_right(name, value, wanted):
    message = re.escape(f"{name} must be {wanted}, got '{value}'")
    with pytest.raises(TwoscaleError, match=message):
        resolved(name, value)


@pytest.mark.parametrize("name", every_setting())
def test_every_setting_has_a_meaning_and_refuses_nonsense(name):
    assert every_setting()[name].meaning
    with pytest.raises(TwoscaleError, match=f"{name} must be .*, got 'nonsense'"):
        resolved(name, "nonsense")


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
