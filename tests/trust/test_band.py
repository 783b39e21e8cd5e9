"""Radii and bands hold for the stated share of fresh samples, whatever the scores are worth."""

import pytest
import torch

from twoscale.errors import TwoscaleError
from twoscale.trust.band import NODES, Band, relative_to_prediction
from twoscale.trust.statistics import check_level

SHAPE = (2, 6, 6)


def made(count, seed):
    """Return scores, predictions and truths; errors are as large as the first score says."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.rand(count, 1, 1, 1, generator=generator).add(0.05)
    prediction = torch.randn(count, *SHAPE, generator=generator).add(3.0)
    errors = 0.1 * size * torch.randn(count, *SHAPE, generator=generator)
    errors[:, 0] *= 5.0
    noise = torch.rand(count, generator=generator)
    return torch.stack([size.flatten(), noise], 1), prediction, prediction + errors


@pytest.fixture(scope="module")
def band():
    fitted = Band().fit(*made(200, 0), [1.0, 1.0])
    return fitted.calibrate([fitted.ratios_of(*made(400, seed)) for seed in (1, 2)])


def test_powers_tell_which_scores_are_worth_something(band):
    assert float(band.powers[0]) == pytest.approx(1.0, abs=0.1)
    assert float(band.powers[1]) < 0.1


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_radii_hold_for_the_level(band, level):
    scores, prediction, truth = made(4000, 3)
    held = relative_to_prediction(prediction, truth) <= band.radius(scores, level)
    assert float(held.double().mean()) == pytest.approx(level, abs=0.03)


def test_bands_hold_at_most_nodes_and_are_wide_where_errors_are(band):
    scores, prediction, truth = made(4000, 4)
    width = band.half_width(scores, prediction, 0.9)
    inside = ((prediction - truth).abs() <= width).flatten(1).double().mean(1) >= NODES
    assert float(inside.double().mean()) == pytest.approx(0.9, abs=0.03)
    first, second = width.mean((0, 2, 3)).tolist()
    assert 4 < first / second < 6


def test_few_samples_give_the_usual_powers_and_even_nodes():
    band = Band().fit(*made(5, 0), [1.0, 0.0])
    assert band.powers.tolist() == [1.0, 0.0]
    assert bool((band.profile == 1).all())


def test_a_level_needs_enough_samples():
    band = Band().fit(*made(30, 0), [1.0, 0.0])
    scores, prediction, _ = made(3, 2)
    band.calibrate([band.ratios_of(*made(18, 1))])
    with pytest.raises(TwoscaleError, match=r"level 0\.95 needs 19 calibration samples"):
        band.radius(scores, 0.95)
    assert bool(band.radius(scores, 0.9).isfinite().all())
    with pytest.raises(TwoscaleError, match="between 0 and 1"):
        band.half_width(scores, prediction, 95)


def test_samples_without_an_error_are_never_inside():
    """A prediction of zeros has no relative error: it counts as infinitely wrong."""
    band = Band().fit(*made(30, 0), [1.0, 0.0])
    scores, prediction, truth = made(20, 1)
    prediction[0] = 0.0
    ratios, _ = band.ratios_of(scores, prediction, truth)
    assert bool(ratios[0].isinf())


def with_zeros(count, seed):
    """Return scores, predictions and truths whose second channel is always zero."""
    scores, prediction, truth = made(count, seed)
    for fields in (prediction, truth):
        fields[:, 1] = 0.0
    return scores, prediction, truth


def test_a_channel_of_zeros_leaves_the_band_of_the_others():
    band = Band().fit(*with_zeros(200, 0), [1.0, 1.0])
    band.calibrate([band.ratios_of(*with_zeros(400, 1))])
    scores, prediction, truth = with_zeros(1000, 2)
    width = band.half_width(scores, prediction, 0.9)
    assert bool(width.isfinite().all())
    inside = ((prediction - truth).abs() <= width).flatten(1).double().mean(1) >= NODES
    assert float(inside.double().mean()) == pytest.approx(0.9, abs=0.04)
    assert bool((width[:, 1] == 0).all())
    errors = relative_to_prediction(prediction, truth)
    torch.testing.assert_close(errors, relative_to_prediction(prediction[:, :1], truth[:, :1]))


def test_what_is_infinite_stays_so_and_nothing_is_nan():
    """Many predictions of zeros, which are wrong: no radius can be given."""
    band = Band().fit(*made(30, 0), [1.0, 0.0])
    scores, prediction, truth = made(20, 1)
    prediction[:10] = 0.0
    ratios = band.ratios_of(scores, prediction, truth)
    assert [int(one.isinf().sum()) for one in ratios] == [10, 10]
    band.calibrate([ratios])
    assert bool(band.radius(scores, 0.9).isinf().all())
    width = band.half_width(scores, prediction, 0.9)
    assert bool(width.isinf().all())
    assert not band.radius(torch.full_like(scores, torch.nan), 0.5).isnan().any()


@pytest.mark.parametrize("level", ["0.9", None, True, 0, 1, -0.5, float("nan"), [0.9]])
def test_levels_are_numbers_between_0_and_1(level):
    with pytest.raises(TwoscaleError, match="the level is a number between 0 and 1"):
        check_level(level)
