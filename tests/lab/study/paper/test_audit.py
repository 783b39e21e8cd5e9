"""The equivalence audit: by hand, laws, and the decisions of the paper's table."""

import math

import pytest

from twoscale.errors import TwoscaleError
from twoscale_lab.study.paper.audit import MARGINS, Audit, Margin, audit, decide, read_margins
from twoscale_lab.study.statistics import Interval

BASE = {0: 1.0, 1: 2.0, 2: 4.0}
RELATIVE = Margin("relative", 0.1)

PAPER = [  # metric, mean change, interval, decision; one of each kind in the paper's table
    ("mre", 0.0001, -0.0001, 0.0002, "equivalent"),  # local, randomised against full
    ("oracle_mre", 0.0, 0.0, 0.0, "equivalent"),
    ("ssim", -0.00001, -0.00003, 0.00001, "equivalent"),
    ("spectral_error", 0.0168, -0.0280, 0.0615, "equivalent"),
    ("pca_fit", 2.78, 2.70, 2.87, "pass"),
    ("spectral_error", -0.2236, -0.4108, -0.0364, "inconclusive"),  # overlap
    ("normal_derivative_trace_error", -0.0039, -0.0059, -0.0019, "equivalent"),
    ("mre", 0.0117, -0.0520, 0.0755, "inconclusive"),  # two-scale
    ("mse", 0.0272, -0.1028, 0.1572, "inconclusive"),
    ("ssim", 0.00004, -0.00023, 0.00031, "equivalent"),
    ("value_trace_error", 0.0039, -0.0211, 0.0288, "equivalent"),
    ("residual_rms", 0.0028, -0.0154, 0.0210, "equivalent"),
    ("pca_fit", 2.81, 2.72, 2.90, "pass"),
    ("mre", 0.0303, -0.0605, 0.1212, "inconclusive"),  # two-scale, hybrid against full
]


@pytest.mark.parametrize(("metric", "change", "lower", "upper", "decision"), PAPER)
def test_the_papers_decisions(metric, change, lower, upper, decision):
    margin = read_margins(MARGINS)[metric]
    assert decide(Interval(change, lower, upper), margin) == decision
    assert change == pytest.approx((lower + upper) / 2, abs=0.006)  # an interval around the mean


def test_a_speed_up_below_the_margin_fails():
    """The paper calls its hybrid solver inconclusive; its interval leaves no doubt."""
    assert decide(Interval(1.03, 1.01, 1.06), Margin("speed_up", 1.2)) == "fail"
    assert decide(Interval(1.2, 1.1, 1.3), Margin("speed_up", 1.2)) == "inconclusive"


def test_the_papers_intervals_are_students():
    """SSIM's deviations bound that of paired differences, and Student's t gives the half-width.

    Speed-ups tell t from the normal quantile: to first order their deviation is at most the sum
    of the two relative deviations, too small for the printed half-width without t.
    """
    full, randomised, half = 0.00025, 0.00015, 0.00027
    student, normal = 2.1318 / math.sqrt(5), 1.6449 / math.sqrt(5)
    assert student * abs(full - randomised) < half < student * (full + randomised)
    relative = 0.140805 / 8.998747 + 0.071645 / 3.234884  # local's PCA times
    half = (2.87 - 2.70 - 0.01) / 2  # at least, given the digits printed
    assert normal * 2.78 * relative < half < student * 2.78 * relative


def test_relative_by_hand():
    values = {0: 1.1, 1: 2.2, 2: 4.8}  # +10, +10, +20 %
    found = audit(values, BASE, RELATIVE)
    half = 2.919986 / 100 * (10 / math.sqrt(3)) / math.sqrt(3)
    assert found.change.estimate == pytest.approx(0.4 / 3)
    assert found.change.upper - found.change.estimate == pytest.approx(half, rel=1e-6)
    assert (found.decision, found.seeds) == ("inconclusive", 3)


@pytest.mark.parametrize(
    ("kind", "size", "factor", "decision"),
    [
        ("relative", 0.1, 1.05, "equivalent"),
        ("relative", 0.1, 0.95, "equivalent"),
        ("relative", 0.1, 1.2, "different"),
        ("relative", 0.1, 0.8, "different"),
        ("speed_up", 1.2, 0.5, "pass"),
        ("speed_up", 1.2, 0.9, "fail"),
        ("speed_up", 1.2, 2.0, "fail"),
    ],
)
def test_a_constant_factor_is_decided(kind, size, factor, decision):
    values = {seed: factor * value for seed, value in BASE.items()}
    found = audit(values, BASE, Margin(kind, size))
    assert found.decision == decision
    expected = 1 / factor if kind == "speed_up" else factor - 1
    assert found.change.estimate == pytest.approx(expected)


@pytest.mark.parametrize(("shift", "decision"), [(0.01, "equivalent"), (-0.2, "different")])
def test_a_constant_shift_is_decided(shift, decision):
    values = {seed: value + shift for seed, value in BASE.items()}
    assert audit(values, BASE, Margin("absolute", 0.1)).decision == decision


def test_absolute_changes_swap_sign_and_ignore_a_shift():
    values, margin = {0: 1.5, 1: 1.8, 2: 4.1}, Margin("absolute", 0.1)
    there, back = audit(values, BASE, margin), audit(BASE, values, margin)
    assert back.change.estimate == pytest.approx(-there.change.estimate)
    assert back.change.lower == pytest.approx(-there.change.upper)
    moved = audit(*({s: v + 7 for s, v in one.items()} for one in (values, BASE)), margin)
    assert moved.change.upper == pytest.approx(there.change.upper)


@pytest.mark.parametrize(("kind", "size"), [("relative", 0.1), ("speed_up", 1.2)])
def test_relative_changes_ignore_units(kind, size):
    values, margin = {0: 0.7, 1: 1.1, 2: 2.9}, Margin(kind, size)
    found = audit(values, BASE, margin)
    scaled = audit(*({s: 1000 * v for s, v in one.items()} for one in (values, BASE)), margin)
    assert scaled.change.lower == pytest.approx(found.change.lower)
    assert scaled.decision == found.decision


def test_equal_values_are_equivalent():
    assert audit(BASE, BASE, RELATIVE).decision == "equivalent"


def test_one_seed_decides_nothing():
    found = audit({0: 1.0, 5: 2.0}, BASE, RELATIVE)
    assert found == Audit(Interval(0.0, None, None), RELATIVE, "inconclusive", 1)


@pytest.mark.parametrize(
    ("values", "base", "kind"),
    [
        ({0: 1.0}, {1: 1.0}, "absolute"),
        ({0: 1.0, 1: 1.0}, {0: 0.0, 1: 1.0}, "relative"),
        ({0: 0.0, 1: 1.0}, {0: 1.0, 1: 1.0}, "speed_up"),
    ],
)
def test_none_where_no_change_is_defined(values, base, kind):
    assert audit(values, base, Margin(kind, 1.0)) is None


def test_zeros_have_absolute_changes():
    zero = {0: 0.0, 1: 0.0}
    assert audit(zero, zero, Margin("absolute", 0.1)).decision == "equivalent"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"mre": {"percent": 5}}, "no margin is called 'percent': known are relative, absolute"),
        ({"mre": {"relative": 0}}, "a margin is positive, not 0"),
        ({"mre": {"relative": math.nan}}, "a margin is positive, not nan"),
        ({"mre": {}}, "the margin of mre is one kind and its size"),
        ({"mre": {"relative": 0.1, "absolute": 1}}, "the margin of mre is one kind and its size"),
    ],
)
def test_bad_margins(data, message):
    with pytest.raises(TwoscaleError, match=message):
        read_margins(data)
