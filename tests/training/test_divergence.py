"""A training that goes wrong without infinite losses is told from one that goes its usual way."""

import math

import pytest

from twoscale.training import History


def history(training, validation=None):
    return History(list(training), list(validation or training), [], 0)


@pytest.mark.parametrize(
    "losses",
    [
        [2.0, 700.0, 26.0, 2.4, 2.4],  # comes to rest where it began
        [2.0, 5e18, 6e2],
        [0.1, 0.01, 1e5, 1e4],  # after progress
        [0.5, math.nan],
        [0.5, math.inf, 30.0],
    ],
)
def test_a_loss_that_left_its_start_for_good(losses):
    start, *epochs = losses
    found = history(epochs).divergence(start)
    assert found is not None
    assert found.start == start
    assert found.highest == max(loss if math.isfinite(loss) else math.inf for loss in epochs)


def test_the_epoch_is_counted_from_one():
    assert history([1.0, 0.5, 20.0, 30.0]).divergence(1.0).epoch == 3


def test_without_a_start_it_is_the_first_epoch():
    assert history([1.0, 50.0]).divergence().start == 1.0
    assert history([50.0, 49.0]).divergence() is None


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        ([1.0, 0.5, 0.1, 0.01], None),
        ([1.0, 1.1, 0.9, 1.0], None),  # a plateau
        ([0.5, 1e-6, 1e-4, 1e-5], None),  # noise at the end
        ([3.0, 20.0, 0.4], None),  # a bad start, overcome
        ([0.5, 0.01, 1e-4], [1.0, 6.0, 12.0]),  # overfitting
        ([0.0, 0.0], None),  # nothing to learn
    ],
)
def test_ordinary_trainings(training, validation):
    assert history(training, validation).divergence(1.0 if training[0] else 0.0) is None
