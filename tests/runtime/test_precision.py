import math

import pytest

from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.runtime.precision import check_range, check_variation, unit_of


@pytest.mark.parametrize("size", [3e-38, 1e-30, 0.3, 1.0, 2.0, 5.0, 1e20, 3e38])
def test_a_unit_is_a_power_of_four_near_the_size(size):
    unit = unit_of(size)
    assert 0.5 <= size / unit < 2
    assert math.log2(unit) % 2 == 0


@pytest.mark.parametrize("largest", [3e38, math.inf, math.nan])
def test_values_near_the_end_of_single_precision_are_refused(largest):
    check_range(1e36)
    with pytest.raises(TwoscaleError, match="single precision"):
        check_range(largest)


@pytest.mark.parametrize(("mean", "spread"), [(0.0, 1.0), (300.0, 0.1), (0.0, 1e-36), (1e30, 1e28)])
def test_ordinary_fields_are_taken_without_a_word(mean, spread, recwarn):
    check_variation(mean, spread, "output")
    assert not recwarn.list


@pytest.mark.parametrize(("spread", "words"), [(1.0, "1e-6 .* 1 digit"), (0.0, "all the same")])
def test_a_large_mean_is_told(spread, words):
    with pytest.warns(TwoscaleWarning, match=f"output fields .*{words}"):
        check_variation(1e6, spread, "output")


def test_tiny_fields_are_refused():
    with pytest.raises(TwoscaleError, match="output fields vary by about 1e-38"):
        check_variation(0.0, 1e-38, "output")
