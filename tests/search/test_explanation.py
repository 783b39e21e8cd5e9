from twoscale.search.candidates import Candidate, Space
from twoscale.search.explanation import explain
from twoscale.search.trials import Outcome, Search, Trial

SPACE = Space((16, 16), 100)


def found(*, half=None, stopped="nothing is left", **errors):
    outcome = Outcome(input_code=10, output_code=20, **errors)
    trial = Trial(Candidate(), "the cheapest", None, 1.0, outcome)
    return Search(60.0, [trial], half, stopped, seconds=2.0)


def told(search, space=SPACE):
    return " ".join(explain(search, space))


def test_it_names_choice_errors_and_shares():
    text = told(found(error=0.05, training_error=0.04, oracle=0.03))
    assert "two-scale affine was the only candidate: validation error 5 %" in text
    assert "can express): 3 %; on training fields: 4 %" in text
    assert "representation 36 %" in text
    assert "data 36 %" in text
    assert "predictor 28 %" in text


def test_a_short_code_is_to_be_longer():
    text = told(found(error=0.05, training_error=0.05, oracle=0.05))
    assert "A longer code than 20 would help" in text
    assert "samples would" not in text


def test_a_predictor_that_learns_too_little():
    text = told(found(error=0.05, training_error=0.05, oracle=0.001))
    assert "A predictor that is not linear would help" in text
    assert "samples would" not in text


def test_more_samples_by_what_half_of_them_lose():
    errors = {"error": 0.02, "training_error": 0.001, "oracle": 0.001}
    text = told(found(half=0.04, **errors))
    assert "the error is 4 %, so twice as many should give about 1 %" in text
    assert "symmetries=square" in text
    assert "symmetries=square" not in told(found(**errors), Space((16, 16), 100, "square"))
    assert "More samples would help little" in told(found(half=0.021, **errors))
    assert "More samples would help little" in told(found(half=0.019, **errors))
    bounded = told(found(half=0.08, error=0.02, training_error=0.016, oracle=0.016))
    assert "twice as many should give about 1.61 %" in bounded, "no less than the oracle error"


def test_a_search_cut_short_asks_for_time():
    errors = {"error": 0.02, "training_error": 0.001, "oracle": 0.001}
    text = told(found(stopped="the next candidate would take about 9 s", **errors))
    assert "A longer budget may help" in text


def test_nothing_found_is_not_explained():
    assert explain(Search(60.0), SPACE) == []
