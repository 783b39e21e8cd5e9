"""Which share of an error has which cause."""

import pytest

from twoscale.search.advice import error_shares, shares_text


@pytest.mark.parametrize("training", [None, 0.0, 0.03, 0.2])
@pytest.mark.parametrize("oracle", [None, 0.0, 0.04, 0.1])
def test_shares_add_up_to_one(training, oracle):
    shares = error_shares(0.05, training, oracle)
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0


def test_shares_are_told_largest_first():
    text = shares_text({"representation": 0.1, "data": 0.7, "predictor": 0.2})
    assert (
        text.index("data 70 %") < text.index("predictor 20 %") < text.index("representation 10 %")
    )


def test_without_an_error_on_training_fields_no_overfitting_is_claimed():
    assert error_shares(0.05, None, 0.03)["data"] == 0
