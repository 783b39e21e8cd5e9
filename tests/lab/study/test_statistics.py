"""Statistics: hand-computed values, laws, and what the paper says of its own tables."""

import math

import pytest

from twoscale.errors import TwoscaleError
from twoscale_lab.study.statistics import (
    Crossover,
    Spread,
    change_of_means,
    changes_by_seed,
    crossovers,
    fit_power_law,
    mean_interval,
    relative_change,
    speed_up,
    spread,
)

VALUES = {0: 1.0, 1: 2.5, 2: 2.0}
BASE = {0: 2.0, 1: 2.0, 2: 5.0}


class TestSpread:
    def test_the_deviation_is_the_samples(self):
        assert spread([2.0, 4.0, 4.0, 6.0]) == Spread(4.0, pytest.approx(math.sqrt(8 / 3)), 4)
        assert spread([3.0]) == Spread(3.0, None, 1)
        assert spread([0.1] * 7) == Spread(0.1, 0.0, 7)

    def test_shift_and_scale(self):
        values = [0.3, 1.1, 0.7]
        found, moved = spread(values), spread([5 - 2 * value for value in values])
        assert moved.mean == pytest.approx(5 - 2 * found.mean)
        assert moved.deviation == pytest.approx(2 * found.deviation)

    @pytest.mark.parametrize(("values", "message"), [([], "at least one"), ([1, math.nan], "nan")])
    def test_bad_values(self, values, message):
        with pytest.raises(TwoscaleError, match=message):
            spread(values)


class TestChanges:
    def test_by_hand(self):
        changes = changes_by_seed(VALUES, BASE, relative_change)  # −1/2, +1/4, −3/5; 5.5 against 9
        assert spread(changes).mean == pytest.approx(-0.85 / 3)
        assert change_of_means(VALUES, BASE) == Spread(pytest.approx(-3.5 / 9), None, 3)

    def test_only_common_seeds_count(self):
        more = {**VALUES, 3: 100.0}, {**BASE, 4: 100.0}
        assert change_of_means(*more) == change_of_means(VALUES, BASE)
        assert len(changes_by_seed(*more, speed_up)) == 3

    def test_swapping_inverts_the_change_of_means(self):
        there, back = change_of_means(VALUES, BASE), change_of_means(BASE, VALUES)
        assert (1 + there.mean) * (1 + back.mean) == pytest.approx(1)

    @pytest.mark.parametrize(
        "base", [{}, {7: 1.0}, {0: 0.0, 1: 1.0}, {0: -1.0, 1: 1.0}], ids=lambda base: str(base)
    )
    def test_none_without_common_seeds_or_for_a_zero_base(self, base):
        assert change_of_means({0: 1.0, 1: 2.0}, base) is None

    def test_infinite_values_are_refused(self):
        with pytest.raises(TwoscaleError, match="inf"):
            change_of_means({0: math.inf}, {0: 1.0})

    def test_there_is_no_speed_up_of_nothing(self):
        assert speed_up(0.0, 1.0) is None
        assert changes_by_seed({0: 1.0, 1: 0.0}, {0: 2.0, 1: 2.0}, speed_up) is None


class TestPapersEffects:
    """Recomputed from the printed means, to about the digits printed."""

    @pytest.mark.parametrize(
        ("value", "base", "printed"),
        [
            (0.01069, 0.01155, -7.4),  # ladder at 128, A1 against A0: MRE,
            (1.709e-3, 4.369e-3, -60.9),  # A3: flux jump,
            (0.00414, 0.00569, -27.2),  # A1: spectral error;
            (7.806e-3, 8.198e-3, -4.8),  # at 256, A1: flux jump
            (0.00351, 0.00383, -8.3),  # and A3 against A1
        ],
    )
    def test_along_the_ladder_they_are_changes_of_means(self, value, base, printed):
        assert 100 * relative_change(value, base) == pytest.approx(printed, abs=0.06)

    @pytest.mark.parametrize(
        ("value", "base", "printed"),
        [
            (1.537e-3, 1.698e-3, 14.4),  # Darcy, spectral: fine-tuned against two-scale,
            (1.920e-3, 1.552e-3, 75.6),  # overlap against local;
            (5.478e-3, 3.545e-3, 54.9),  # mechanism, spectral: two-scale against local;
            (0.01149, 0.01139, 1.17),  # solver audit, MRE: randomised against full
        ],
    )
    def test_paired_effects_are_not_changes_of_means(self, value, base, printed):
        """The reason for two meanings: these tables' effects do not follow from their means."""
        assert abs(100 * relative_change(value, base) - printed) > 0.2

    @pytest.mark.parametrize(
        ("randomised", "full", "printed"),
        [(3.234884, 8.998747, 2.78), (10.401629, 28.494440, 2.74), (4.738862, 13.324838, 2.81)],
    )
    def test_speed_ups(self, randomised, full, printed):
        assert speed_up(randomised, full) == pytest.approx(printed, abs=0.005)


class TestMeanInterval:
    def test_by_hand(self):
        found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
        half = 2.131847 * math.sqrt(2.5 / 5)  # the table's t for 90 % and four degrees of freedom
        assert found.estimate == 3
        assert (found.lower, found.upper) == pytest.approx((3 - half, 3 + half), rel=1e-6)

    def test_equal_values_leave_no_doubt(self):
        found = mean_interval([0.1] * 5)
        assert found.lower == found.estimate == found.upper == 0.1

    def test_one_value_has_no_bounds(self):
        found = mean_interval([2.0])
        assert (found.estimate, found.lower, found.upper) == (2.0, None, None)


SIZES = (64, 128, 256)
TIMES = {  # the paper's cumulative seconds at SIZES, its exponents, its projections to 512 and 1024
    "two-scale": ((190.2, 213.1, 273.3), 0.26, (328, 393)),
    "overlap": ((177.7, 210.1, 288.6), 0.35, (368, 469)),
    "two-scale+A3": ((313.7, 391.0, 652.5), 0.53, None),
    "fno": ((293.5, 725.7, 3417.2), 1.77, None),
}


class TestPowerLaw:
    @pytest.mark.parametrize("method", TIMES)
    def test_the_papers_exponents(self, method):
        times, exponent, _ = TIMES[method]
        law = fit_power_law(zip(SIZES, times, strict=True))
        assert law.exponent == pytest.approx(exponent, abs=0.005)

    @pytest.mark.parametrize("method", ["two-scale", "overlap"])
    def test_the_papers_projections_are_anchored_at_the_last_size(self, method):
        times, _, projected = TIMES[method]
        law = fit_power_law(zip(SIZES, times, strict=True))
        assert [round(law.extrapolate(size)) for size in (512, 1024)] == list(projected)

    def test_by_hand(self):
        """In logarithms to base 2: (0, 0), (1, 0), (2, 3): slope 3/2, residuals ½, −1, ½."""
        law = fit_power_law([(1, 1), (2, 1), (4, 8)])
        assert fit_power_law([(4, 8), (1, 1), (2, 1)]) == law
        assert law.exponent == pytest.approx(1.5)
        assert law.coefficient == pytest.approx(2**-0.5)
        assert law.exponent_error == pytest.approx(math.sqrt(1.5 / 2))
        assert law.extrapolate(8) == pytest.approx(2**4.5)

    def test_seeds_of_the_last_size_anchor_by_their_geometric_mean(self):
        law = fit_power_law([(1, 1), (1, 1), (4, 2), (4, 8)])
        assert law.exponent == pytest.approx(1)
        assert law.extrapolate(16) == pytest.approx(16)

    def test_an_exact_law_is_found_without_error(self):
        law = fit_power_law((size, 0.3 * size**1.7) for size in (3, 10, 40, 41))
        assert (law.coefficient, law.exponent) == pytest.approx((0.3, 1.7))
        assert law.exponent_error == pytest.approx(0, abs=1e-12)
        assert law.extrapolate(100) == pytest.approx(0.3 * 100**1.7)

    def test_units_do_not_matter(self):
        law = fit_power_law(zip(SIZES, TIMES["fno"][0], strict=True))
        other = fit_power_law((size / 64, 1000 * law_time) for size, law_time in law.points)
        assert other.exponent == pytest.approx(law.exponent)
        assert other.exponent_error == pytest.approx(law.exponent_error)
        assert other.extrapolate(8) == pytest.approx(1000 * law.extrapolate(512))

    def test_two_laws_are_equal_where_they_meet(self):
        one = fit_power_law([(1, 3), (2, 5), (4, 11)])
        other = fit_power_law([(1, 9), (2, 10), (4, 12)])
        at = one.meets(other)
        assert at == pytest.approx(other.meets(one))
        values = [law.coefficient * at**law.exponent for law in (one, other)]
        assert values[0] == pytest.approx(values[1])

    def test_laws_that_grow_alike_never_meet(self):
        law = fit_power_law([(1, 2), (2, 4)])
        assert law.meets(law) is None
        assert law.meets(fit_power_law([(1, 3), (2, 6.000001)])) is None

    def test_two_points_fit_any_law(self):
        law = fit_power_law([(1, 2), (10, 20)])
        assert law.exponent == pytest.approx(1)
        assert law.exponent_error is None
        assert law.extrapolate(100) == pytest.approx(200)

    @pytest.mark.parametrize("points", [[], [(1, 2)], [(3, 1), (3, 2)]])
    def test_one_size_fits_none(self, points):
        with pytest.raises(TwoscaleError, match="two sizes or more"):
            fit_power_law(points)

    @pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
    def test_only_positive_values(self, value):
        with pytest.raises(TwoscaleError, match="positive"):
            fit_power_law([(1, 1), (2, value)])


OVERLAP = {1250: 2.520, 2000: 2.399, 4000: 2.321, 8000: 2.292}  # the paper's MRE in percent
TWO_SCALE = {1250: 3.283, 2000: 2.341, 4000: 1.648, 8000: 1.155}
TUNED = {1250: 2.875, 2000: 2.012, 4000: 1.448, 8000: 1.086}


class TestCrossovers:
    @pytest.mark.parametrize(("curve", "at"), [(TWO_SCALE, 1922), (TUNED, 1529)])
    def test_the_papers_curves_cross_between_its_smallest_sizes(self, curve, at):
        (found,) = crossovers(curve, OVERLAP)
        assert found == Crossover(pytest.approx(at, abs=0.5), below=True)

    def test_by_hand(self):
        """log₂ of the ratio goes from 1 to −3, so a quarter of the way from 2⁴ to 2⁸: 2⁵."""
        (found,) = crossovers({16: 2.0, 256: 1.0}, {16: 1.0, 256: 8.0})
        assert found.at == pytest.approx(32)

    def test_swapping_keeps_the_place_and_turns_the_direction(self):
        (there,), (back,) = crossovers(TUNED, OVERLAP), crossovers(OVERLAP, TUNED)
        assert back.at == pytest.approx(there.at)
        assert (there.below, back.below) == (True, False)

    def test_there_and_back(self):
        level = dict.fromkeys((1, 2, 4), 1.0)
        found = crossovers({1: 2.0, 2: 0.5, 4: 2.0}, level)
        assert [one.at for one in found] == pytest.approx([math.sqrt(2), math.sqrt(8)])
        assert [one.below for one in found] == [True, False]

    @pytest.mark.parametrize(
        ("values", "at"),
        [
            ((2.0, 1.0, 0.5, 0.5), [2]),  # through a tie
            ((2.0, 1.0, 1.0, 0.5), [2]),  # equal for a while
            ((2.0, 1.0, 2.0, 2.0), []),  # touch and part
            ((1.0, 1.0, 2.0, 2.0), []),  # part from a common start
            ((1.0, 1.0, 1.0, 1.0), []),  # equal
            ((2.0, 2.0, 2.0, 1.0), []),  # meet at the end
        ],
    )
    def test_ties(self, values, at):
        curve = dict(zip((1, 2, 4, 8), values, strict=True))
        found = crossovers(curve, dict.fromkeys(curve, 1.0))
        assert [one.at for one in found] == pytest.approx(at)

    def test_only_common_sizes_count(self):
        assert crossovers({1: 2.0, 2: 1.0}, {2: 2.0, 4: 1.0}) == []
        assert crossovers({}, {}) == []

    def test_values_have_a_logarithm(self):
        with pytest.raises(TwoscaleError, match=r"0\.0 came where logarithms are taken"):
            crossovers({1: 0.0, 2: 1.0}, {1: 1.0, 2: 1.0})
