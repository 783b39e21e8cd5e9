import numpy as np
import pytest

from twoscale.data import Shares, split_samples
from twoscale.errors import TwoscaleError, TwoscaleWarning


def test_parts_are_80_10_10_and_cover_everything_once():
    split = split_samples(1000, seed=3)
    assert np.array_equal(split.training, split_samples(1000, seed=3).training)
    assert not np.array_equal(split.training, split_samples(1000, seed=4).training)
    parts = (split.training, split.validation, split.test)
    assert [len(part) for part in parts] == [800, 100, 100]
    assert sorted(np.concatenate(parts)) == list(range(1000))


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
    with pytest.raises(TwoscaleError, match="at least 10 samples, got 9"):
        split_samples(9, seed=0)


@pytest.mark.parametrize(
    ("text", "samples", "counts"),
    [
        ("0.8/0.1/0.1", 1009, (809, 100, 100)),
        ("0.29/0.71", 100, (29, 71, 0)),
        ("0.98/0.01/0.01", 50, (48, 1, 1)),
        ("1/0/0", 7, (7, 0, 0)),
        ("30/10/10", 60, (30, 10, 10)),
        ("80/10/10", 100, (80, 10, 10)),
    ],
)
def test_shares_and_numbers(text, samples, counts):
    shares = Shares.parse(text)
    assert shares.counts(samples) == counts
    assert Shares.parse(str(shares)) == shares
    split = split_samples(samples, seed=1, shares=text, chooses=False)
    parts = (split.training, split.validation, split.test)
    assert tuple(map(len, parts)) == counts
    chosen = np.concatenate(parts)
    assert len(set(chosen.tolist())) == len(chosen)


def test_a_fit_that_chooses_gets_a_tenth_with_a_warning():
    with pytest.warns(TwoscaleWarning, match="5 of the 50 training samples are held out"):
        split = split_samples(50, seed=0, shares="1/0/0")
    assert [len(part) for part in split.as_dict().values()] == [45, 5, 0, 0]
    assert split.measured == "validation"
    with pytest.raises(TwoscaleError, match="at least 3"):
        split_samples(2, seed=0, shares="1/0/0")


@pytest.mark.parametrize(
    "text", ["", "1", "a/b", "0.5/0.5/0.5", "0.2/0.3/0.4", "1/2/3/4", "-1/2/0"]
)
def test_what_is_no_split(text):
    with pytest.raises(TwoscaleError, match=r"shares such as 0.8/0.1/0.1"):
        Shares.parse(text)
