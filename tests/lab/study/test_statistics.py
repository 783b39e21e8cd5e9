"""Statistics: hand-computed values, laws, and what the paper says of its own tables."""

import math

import pytest

from twoscale.errors import TwoscaleError
from twoscale_lab.study.statistics import (
    Crossover,
    Spread,
    changes_by_seed,
    crossovers,
    fit_power_law,
    learned_to_oracle,
    mean_interval,
    paired,
    paired_effect,
    relative_change,
    speed_up,
    spread,
)

VALUES = {0: 1.0, 1: 2.5, 2: 2.0}
BASE = {0: 2.0, 1: 2.0, 2: 5.0}


class TestSpread:
    def test_the_deviation_is_the_samples(self):
        assert spread([2.0, 4.0, 4.0, 6.0]) == Spread(4.0, pytest.approx(math.sqrt(8 / 3)), 4)

    def test_one_seed_has_no_deviation(self):
        assert spread([3.0]) == Spread(3.0, None, 1)

    def test_equal_values_have_none_either(self):
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


class TestPairedEffect:
    def test_by_hand(self):
        effect = paired_effect(VALUES, BASE)  # −1/2, +1/4, −3/5; 5.5 against 9
        assert effect.changes.mean == pytest.approx(-0.85 / 3)
        assert effect.changes.seeds == 3
        assert effect.change_of_means == pytest.approx(-3.5 / 9)
        assert effect.seeds_below == 2

    def test_only_common_seeds_count(self):
        assert paired({1: 7.0, 0: 5.0, 9: 1.0}, {0: 1.0, 1: 2.0, 3: 4.0}) == [
            (5.0, 1.0),
            (7.0, 2.0),
        ]
        assert paired_effect({**VALUES, 3: 100.0}, {**BASE, 4: 100.0}) == paired_effect(
            VALUES, BASE
        )

    def test_units_do_not_matter(self):
        scaled = [{seed: 1000 * value for seed, value in one.items()} for one in (VALUES, BASE)]
        effect, same = paired_effect(VALUES, BASE), paired_effect(*scaled)
        assert same.changes.mean == pytest.approx(effect.changes.mean)
        assert same.change_of_means == pytest.approx(effect.change_of_means)

    def test_swapping_inverts_the_change_of_means(self):
        there, back = paired_effect(VALUES, BASE), paired_effect(BASE, VALUES)
        assert (1 + there.change_of_means) * (1 + back.change_of_means) == pytest.approx(1)
        assert there.seeds_below + back.seeds_below == 3

    def test_both_meanings_agree_for_a_constant_ratio(self):
        effect = paired_effect({0: 1.5, 1: 6.0}, {0: 1.0, 1: 4.0})
        assert effect.changes.mean == effect.change_of_means == 0.5
        assert effect.changes.deviation == 0

    def test_equal_values_have_no_effect(self):
        effect = paired_effect(BASE, BASE)
        assert (effect.changes.mean, effect.change_of_means, effect.seeds_below) == (0, 0, 0)

    def test_one_seed(self):
        assert paired_effect({0: 3.0}, {0: 2.0}).changes == Spread(0.5, None, 1)

    @pytest.mark.parametrize(
        "base", [{}, {7: 1.0}, {0: 0.0, 1: 1.0}, {0: -1.0, 1: 1.0}], ids=lambda base: str(base)
    )
    def test_none_without_common_seeds_or_for_a_zero_base(self, base):
        assert paired_effect({0: 1.0, 1: 2.0}, base) is None

    def test_infinite_values_are_refused(self):
        with pytest.raises(TwoscaleError, match=r"inf came .* run it again"):
            paired_effect({0: math.inf}, {0: 1.0})


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
            (3.283, 2.520, -30.3),
            (2.341, 2.399, 2.4),
            (1.155, 2.292, 49.6),
            (30.73, 8.529, -260.3),
        ],
    )
    def test_over_training_sizes_too_with_reductions_positive(self, value, base, printed):
        assert -100 * relative_change(value, base) == pytest.approx(printed, abs=0.06)

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

    @pytest.mark.parametrize(
        ("learned", "oracle", "printed"), [(2.952, 0.278, 10.6), (2.926, 0.278, 10.5)]
    )
    def test_learned_to_oracle(self, learned, oracle, printed):
        assert learned_to_oracle(learned, oracle) == pytest.approx(printed, abs=0.05)


@pytest.mark.parametrize("oracle", [None, 0.0])
def test_there_is_no_ratio_to_an_oracle_without_error(oracle):
    assert learned_to_oracle(0.1, oracle) is None


def test_there_is_no_speed_up_of_nothing():
    assert speed_up(0.0, 1.0) is None
    assert changes_by_seed({0: 1.0, 1: 0.0}, {0: 2.0, 1: 2.0}, speed_up) is None


class TestMeanInterval:
    def test_by_hand(self):
        found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
        half = 2.131847 * math.sqrt(2.5 / 5)  # the table's t for 90 % and four degrees of freedom
        assert found.estimate == 3
        assert (found.lower, found.upper) == pytest.approx((3 - half, 3 + half), rel=1e-6)

    def test_wider_for_more_confidence(self):
        values = [1.0, 2.0, 4.0]
        assert mean_interval(values, confidence=0.95).upper > mean_interval(values).upper

    def test_shift_and_scale(self):
        values = [0.3, 1.1, 0.7]
        found, moved = mean_interval(values), mean_interval([5 - 2 * value for value in values])
        assert moved.lower == pytest.approx(5 - 2 * found.upper)
        assert moved.upper == pytest.approx(5 - 2 * found.lower)

    def test_equal_values_leave_no_doubt(self):
        found = mean_interval([0.1] * 5)
        assert found.lower == found.estimate == found.upper == 0.1

    def test_one_value_has_no_bounds(self):
        found = mean_interval([2.0])
        assert (found.estimate, found.lower, found.upper) == (2.0, None, None)

    @pytest.mark.parametrize("confidence", [0.0, 1.0, 90])
    def test_confidence_is_a_fraction(self, confidence):
        with pytest.raises(TwoscaleError, match="between 0 and 1"):
            mean_interval([1.0, 2.0], confidence=confidence)


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
        found = [law.extrapolate(size, anchored=True) for size in (512, 1024)]
        assert [round(one.estimate) for one in found] == list(projected)
        assert all(one.lower < times[-1] < one.upper for one in found)
        assert law.extrapolate(512).estimate == pytest.approx(law(512))
        assert law(512) < found[0].estimate  # the line runs below the last measurement

    def test_by_hand(self):
        """In logarithms to base 2: (0, 0), (1, 0), (2, 3): slope 3/2, residuals ½, −1, ½."""
        law = fit_power_law([(1, 1), (2, 1), (4, 8)])
        assert law.exponent == pytest.approx(1.5)
        assert law.coefficient == pytest.approx(2**-0.5)
        assert law.exponent_error == pytest.approx(math.sqrt(1.5 / 2))
        found = law.extrapolate(8, confidence=0.5)  # t is 1 for one degree of freedom
        assert found.estimate == pytest.approx(2**4)
        half = math.sqrt(1.5 * (1 + 1 / 3 + 2**2 / 2))  # 1 + 1/n + (x−x̄)²/Σ(x−x̄)²
        assert (found.lower, found.upper) == pytest.approx((2 ** (4 - half), 2 ** (4 + half)))

    def test_anchored_by_hand(self):
        found = fit_power_law([(1, 1), (2, 1), (4, 8)]).extrapolate(
            8, anchored=True, confidence=0.5
        )
        assert found.estimate == pytest.approx(2**4.5)
        # The anchor's own error counts, and it tilts the line: 1 + 1 + (x−xₐ)²/S + 2(x−xₐ)(xₐ−x̄)/S.
        half = math.sqrt(1.5 * (1 + 1 + 1 / 2 + 2 / 2))
        assert (found.lower, found.upper) == pytest.approx((2 ** (4.5 - half), 2 ** (4.5 + half)))

    def test_seeds_of_the_last_size_anchor_by_their_geometric_mean(self):
        law = fit_power_law([(1, 1), (1, 1), (4, 2), (4, 8)])
        assert law.exponent == pytest.approx(1)
        assert law.extrapolate(16, anchored=True).estimate == pytest.approx(16)

    def test_an_exact_law_is_found_without_error(self):
        law = fit_power_law((size, 0.3 * size**1.7) for size in (3, 10, 40, 41))
        assert (law.coefficient, law.exponent) == pytest.approx((0.3, 1.7))
        assert law.exponent_error == pytest.approx(0, abs=1e-12)
        found = law.extrapolate(100)
        assert found.lower == pytest.approx(found.upper) == pytest.approx(0.3 * 100**1.7)

    def test_units_do_not_matter(self):
        law = fit_power_law(zip(SIZES, TIMES["fno"][0], strict=True))
        other = fit_power_law((size / 64, 1000 * law_time) for size, law_time in law.points)
        assert other.exponent == pytest.approx(law.exponent)
        assert other.exponent_error == pytest.approx(law.exponent_error)
        assert other.extrapolate(8).upper == pytest.approx(1000 * law.extrapolate(512).upper)

    def test_order_does_not_matter(self):
        points = [(4, 8), (1, 1), (2, 1)]
        assert fit_power_law(points) == fit_power_law(points[::-1])

    def test_two_laws_are_equal_where_they_meet(self):
        one = fit_power_law([(1, 3), (2, 5), (4, 11)])
        other = fit_power_law([(1, 9), (2, 10), (4, 12)])
        at = one.meets(other)
        assert at == pytest.approx(other.meets(one))
        assert one(at) == pytest.approx(other(at))

    def test_laws_that_grow_alike_never_meet(self):
        law = fit_power_law([(1, 2), (2, 4)])
        assert law.meets(law) is None
        assert law.meets(fit_power_law([(1, 3), (2, 6.000001)])) is None

    def test_two_points_fit_any_law(self):
        law = fit_power_law([(1, 2), (10, 20)])
        assert law.exponent == pytest.approx(1)
        assert law.exponent_error is None
        found = law.extrapolate(100)
        assert (found.lower, found.upper) == (None, None)
        assert found.estimate == pytest.approx(200)

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
        assert found == Crossover(pytest.approx(at, abs=0.5), (1250, 2000), below=True)

    @pytest.mark.parametrize(("curve", "within"), [(TWO_SCALE, 4000), (TUNED, 2000)])
    def test_overlaps_full_data_error_is_reached_early(self, curve, within):
        (found,) = crossovers(curve, dict.fromkeys(curve, OVERLAP[8000]))
        assert found.between[1] == within
        assert found.below

    def test_by_hand(self):
        """log₂ of the ratio goes from 1 to −3, so a quarter of the way from 2⁴ to 2⁸: 2⁵."""
        (found,) = crossovers({16: 2.0, 256: 1.0}, {16: 1.0, 256: 8.0})
        assert found.at == pytest.approx(32)

    def test_swapping_keeps_the_place_and_turns_the_direction(self):
        (there,), (back,) = crossovers(TUNED, OVERLAP), crossovers(OVERLAP, TUNED)
        assert back.at == pytest.approx(there.at)
        assert (there.below, back.below) == (True, False)

    def test_units_do_not_matter(self):
        def scaled(curve):
            return {size / 10: value / 100 for size, value in curve.items()}

        (found,), (other,) = crossovers(TUNED, OVERLAP), crossovers(scaled(TUNED), scaled(OVERLAP))
        assert other.at == pytest.approx(found.at / 10)

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
