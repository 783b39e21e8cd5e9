"""Every surrogate says how wrong it can be, for all kinds of data, and remembers it when saved."""

import warnings

import numpy as np
import pytest
import torch

from tests.surrogate.tiny import tiny
from twoscale import METHODS, Darcy, Poisson, Surrogate, certify, fit_auto, fit_together
from twoscale.errors import TwoscaleError, TwoscaleWarning

SIDE = 16


def pairs(problem, count, seed=0):
    inputs, outputs = problem.pairs(problem.grid(SIDE, SIDE), range(count), seed=seed)
    return inputs.float().numpy(), outputs.float().numpy()


def errors(found, truth):
    away = (found.fields - truth).reshape(len(truth), -1)
    return np.linalg.norm(away, axis=1) / np.linalg.norm(
        found.fields.reshape(len(truth), -1), axis=1
    )


@pytest.fixture(scope="module")
def fitted():
    """A quick Darcy surrogate that knows its equation, with 100 calibration fields."""
    return Surrogate("two-scale", predictor="affine", problem=Darcy()).fit(
        *pairs(Darcy(), 500), validation=0.4
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_calibrated_and_stores_it(method, tmp_path):
    x, u = pairs(Poisson(), 60)
    surrogate = Surrogate(method, **tiny(method)).fit(x, u, validation=0.5)
    surrogate.save(tmp_path / "s")
    found, again = (
        one.assess(x[:2], level=0.9) for one in (surrogate, Surrogate.load(tmp_path / "s"))
    )
    np.testing.assert_array_equal(found.fields, surrogate.predict(x[:2]))
    for name in ("radius", "outside", "lower", "upper"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    assert found.radius.shape == found.outside.shape == (2,)
    assert bool((found.lower <= found.fields).all() and (found.fields <= found.upper).all())


def test_half_of_what_is_held_out_calibrates(fitted):
    assert len(fitted.trust_.band.ratios) == 100


def test_radii_hold_and_are_narrower_than_one_for_all(fitted):
    x, u = pairs(Darcy(), 1000, seed=1)
    found = fitted.assess(x)
    held = errors(found, u) <= found.radius
    assert 0.9 <= held.mean() <= 0.99
    assert found.radius.mean() < 0.9 * np.quantile(errors(found, u), 0.95)
    inside = ((found.lower <= u) & (u <= found.upper)).reshape(len(u), -1).mean(
        axis=1
    ) >= found.nodes
    assert 0.9 <= inside.mean() <= 0.99


def test_evaluations_state_the_coverage(fitted):
    x, u = pairs(Darcy(), 300, seed=2)
    found, stated = fitted.assess(x), fitted.evaluate(x, u)["trust"]
    assert stated["coverage"] == pytest.approx((errors(found, u) <= found.radius).mean())
    assert stated["mean_radius"] == pytest.approx(found.radius.mean(), rel=1e-6)
    assert stated["outside"] == pytest.approx(found.outside.mean())
    assert stated["calibration_samples"] == 100


def test_an_unknown_equation_leaves_the_range_only(fitted):
    x, u = pairs(Darcy(), 5, seed=2)
    other = fitted.with_problem(None)
    assert set(other.evaluate(x, u)["trust"]) == {"outside", "level", "calibration_samples"}
    with pytest.raises(TwoscaleError, match="calibrated with its equation"):
        other.assess(x)


def test_calibration_pairs_may_be_given_or_left_out():
    x, u = pairs(Poisson(), 100)
    surrogate = Surrogate("global", predictor="affine")
    surrogate.fit(x[:60], u[:60], calibration=(x[60:], u[60:]))
    assert len(surrogate.trust_.band.ratios) == 40
    surrogate.fit(x[:60], u[:60], calibration=False)
    with pytest.raises(TwoscaleError, match="call calibrate with pairs"):
        surrogate.assess(x[:3])
    surrogate.fit(x[:60], u[:60], validation=(x[60:], u[60:]))
    assert surrogate.trust_.band is None
    assert len(surrogate.calibrate(x[60:], u[60:]).trust_.band.ratios) == 40
    assert surrogate.assess(x[:3]).radius.shape == (3,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": 0.0}, "between 0 and 1"),
        ({"level": "0.9"}, "the level is a number between 0 and 1, such as 0.95, got '0.9'"),
        ({"level": None}, "the level is a number between 0 and 1, such as 0.95, got None"),
        ({"level": 0.999}, "needs 999 calibration samples at least, and there are 100"),
    ],
)
def test_wrong_levels_are_refused(fitted, change, words):
    with pytest.raises(TwoscaleError, match=words):
        fitted.assess(pairs(Darcy(), 2)[0], **change)


def test_symmetries_and_members_are_opinions():
    """Without an equation the disagreement of images scales the radii; of members as well."""
    x, u = pairs(Poisson(), 160)
    images = Surrogate("global", **tiny("global", symmetries="square")).fit(x, u, validation=0.4)
    assert images.trust_.kinds == ("disagreement", "distance")
    members = Surrogate("whole-field", **tiny("whole-field", members=2)).fit(x, u, validation=0.4)
    assert members.trust_.kinds == ("disagreement", "distance")
    assert bool((members.assess(x[:3], level=0.9).radius > 0).all())


def test_single_samples_tensors_and_channels():
    x, u = pairs(Poisson(), 120)
    both, made = np.stack([x, 2 + x], 1), np.stack([u, 5 * u], 1)
    surrogate = Surrogate("global", predictor="affine").fit(both, made, validation=0.5)
    found = surrogate.assess(torch.from_numpy(both[0]), level=0.9)
    assert found.fields.shape == found.lower.shape == (2, SIDE, SIDE)
    assert isinstance(found.upper, torch.Tensor)
    assert found.flags.values.shape == (1, 2)
    with pytest.warns(TwoscaleWarning, match="1 of 1 inputs is .* in channel '[01]'"):
        assert surrogate.assess(10 * both[:1], level=0.9).outside.all()
    assert surrogate.flag(10 * both[:2]).outside.all()


def test_known_elliptic_equations_give_certificates(fitted):
    x, _ = pairs(Darcy(), 3, seed=4)
    proven = fitted.assess(x).certificate
    assert bool((proven.relative_error_lower > 0).all())
    assert fitted.with_problem(None).trust_ is fitted.trust_
    assert fitted.assess(x, certificate=False).certificate is None


def test_a_certificate_is_of_the_inputs_in_their_own_precision():
    problem = Poisson()
    x, u = problem.pairs(problem.grid(SIDE, SIDE), range(60), seed=0)
    surrogate = Surrogate("global", predictor="affine", problem=problem)
    found = surrogate.fit(x, u, validation=0.5).assess(x[:4], level=0.9)
    expected = certify(found.fields, x[:4], problem)
    for name, values in expected.as_dict().items():
        np.testing.assert_array_equal(getattr(found.certificate, name), values)


# Flags


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_flags_refuse_what_predictions_refuse(fitted, value):
    x, _ = pairs(Darcy(), 2)
    x[1, 3, 3] = value
    for call in (fitted.flag, fitted.predict, fitted.assess, fitted.predict_flagged):
        with pytest.raises(TwoscaleError, match="NaN or infinite"):
            call(x)


@pytest.mark.parametrize("size", [1e15, 1e18, 1e20, 1e30])
def test_huge_inputs_are_outside_and_no_radius_is_nan(fitted, size):
    x, u = pairs(Poisson(), 200)
    unknown = Surrogate("two-scale", predictor="affine").fit(x, u, validation=0.2)
    assert unknown.flag(size * x[:5]).outside.all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for surrogate in (unknown, fitted):
            found = surrogate.assess(size * np.abs(x[:5]), level=0.9)
            assert found.outside.all()
            assert not np.isnan(found.radius).any()


@pytest.mark.filterwarnings("ignore:the training input fields are all the same")
def test_constant_inputs_have_a_radius():
    _, u = pairs(Poisson(), 200)
    ones = np.ones_like(u)
    surrogate = Surrogate("global", predictor="affine").fit(ones, u, validation=0.2)
    found = surrogate.assess(ones[:3], level=0.9)
    assert not np.isnan(found.radius).any()
    assert not found.outside.any()


def test_flags_come_with_predictions(fitted):
    x, _ = pairs(Darcy(), 4, seed=3)
    predicted, flags = fitted.predict_flagged(2 * x)
    np.testing.assert_array_equal(predicted, fitted.predict(2 * x))
    np.testing.assert_array_equal(flags.values, fitted.flag(2 * x).values)


def test_warnings_name_the_line_and_the_numbers(fitted):
    x, _ = pairs(Darcy(), 10, seed=3)
    x[4] += 0.1
    with pytest.warns(TwoscaleWarning, match=r"1 of 10 inputs is unlike") as caught:
        flags = fitted.assess(x).flags
    assert caught[0].filename == __file__
    assert flags.sentence(4) in str(caught[0].message)
    assert flags.sentence(4).startswith("sample 4: range of values ")
    assert flags.sentence(4).endswith(" (limit 1)")
    (reason,) = flags.reasons()
    assert reason["sample"] == 4
    np.testing.assert_array_equal(reason["values"], flags.values[4])
    assert fitted.flag(x[:4]).summary == "0 of 4 inputs are unlike the training inputs"


def test_every_fit_learns_the_range_of_its_inputs():
    x, u = pairs(Poisson(), 60)
    given = (x[40:], u[40:])
    searched = [
        fit_auto(x[:40], u[:40], budget="1s", predictor="affine", **options).surrogate
        for options in ({}, {"validation": given}, {"calibration": False})
    ]
    together = [Surrogate("global", **tiny("global", seed=seed)) for seed in (0, 0, 1)]
    data = [(x[:40], u[:40], given)] * 3
    fit_together(together, data, same=[1, 1, 1], trusted=[True, True, False])
    for surrogate in (*searched[:2], *together[:2]):
        assert surrogate.flag(100 * x).outside.all()
        assert surrogate.timings_["calibration"] > 0
        with pytest.raises(TwoscaleError, match="not calibrated"):
            surrogate.assess(x)
    assert together[0].trust_.known is together[1].trust_.known
    for surrogate in (searched[2], together[2]):
        with pytest.raises(TwoscaleError, match="was fitted with calibration=False"):
            surrogate.flag(x)


def test_fine_tuning_keeps_the_range_and_drops_the_band():
    x, u = pairs(Poisson(), 120)
    start = Surrogate("two-scale", **tiny("two-scale")).fit(x, u, validation=0.4)
    tuned = start.finetune(x, u, objective="A1", epochs=1)
    assert tuned.trust_.known is start.trust_.known
    assert tuned.flag(100 * x).outside.all()
    with pytest.raises(TwoscaleError, match="not calibrated: call calibrate"):
        tuned.assess(x)
    assert start.assess(x[:2], level=0.9).radius.shape == (2,)


# Calibrations


def test_the_calibration_of_a_copy_leaves_the_original_alone(fitted):
    x, u = pairs(Darcy(), 120, seed=6)
    before = fitted.assess(x[:5]).radius
    other = fitted.with_problem(None)
    other.calibrate(x, u)
    assert other.trust_.kinds == ("distance",)
    np.testing.assert_array_equal(fitted.assess(x[:5]).radius, before)
    with pytest.raises(TwoscaleError):
        fitted.calibrate(x, u[:-1])
    np.testing.assert_array_equal(fitted.assess(x[:5]).radius, before)


def test_fewer_calibration_samples_are_pointed_out(fitted):
    x, u = pairs(Darcy(), 9, seed=6)
    words = r"has 9 samples, the one it replaces had 100: levels above 0\.9 are no longer possible"
    with pytest.warns(TwoscaleWarning, match=words) as caught:
        fitted.with_problem(Darcy()).calibrate(x, u)
    assert caught[0].filename == __file__


def test_levels_of_surrogates_that_are_not_fitted():
    with pytest.raises(TwoscaleError, match="is not fitted yet"):
        Surrogate().check_level(0.9)
