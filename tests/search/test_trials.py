import pytest

from twoscale.search.trials import Outcome


def test_shares_of_the_error_add_up():
    outcome = Outcome(error=0.05, training_error=0.04, oracle=0.03, input_code=1, output_code=1)
    assert outcome.shares == pytest.approx(
        {"representation": 0.36, "data": 0.36, "predictor": 0.28}
    )
    worse_on_training = Outcome(0.04, 0.05, 0.0, 1, 1)
    assert worse_on_training.shares == {"representation": 0.0, "data": 0.0, "predictor": 1.0}
