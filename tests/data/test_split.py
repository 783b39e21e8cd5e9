import numpy as np
import pytest

from twoscale.data import split_samples
from twoscale.errors import TwoscaleError


def test_parts_are_80_10_10_and_cover_everything_once():
    split = split_samples(1000, seed=3)
    parts = (split.training, split.validation, split.test)
    assert [len(part) for part in parts] == [800, 100, 100]
    assert sorted(np.concatenate(parts)) == list(range(1000))


def test_seed_decides_the_shuffle():
    one, again, other = (split_samples(100, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.training, again.training)
    assert not np.array_equal(one.training, other.training)


def test_smaller_training_sets_are_nested_prefixes():
    whole = split_samples(1000, seed=0)
    small, smaller = (split_samples(1000, seed=0, training=m) for m in (400, 125))
    assert np.array_equal(small.training, whole.training[:400])
    assert np.array_equal(smaller.training, small.training[:125])
    assert np.array_equal(small.validation, whole.validation)
    assert np.array_equal(smaller.test, whole.test)


@pytest.mark.parametrize("training", [1, 801])
def test_impossible_training_size(training):
    with pytest.raises(TwoscaleError, match="between 2 and 800 can train"):
        split_samples(1000, seed=0, training=training)


def test_too_few_samples():
    with pytest.raises(TwoscaleError, match="at least 10 samples, got 9"):
        split_samples(9, seed=0)
