from dataclasses import replace

from tests.search.fake import space_of
from twoscale.search.auto import explain
from twoscale.search.space import Candidate
from twoscale.search.trials import Outcome, Search, Trial

SPACE = space_of((16, 16), 100)


def found(*, half=None, stopped="nothing is left", candidate=SPACE.first, **errors):
    outcome = Outcome(input_code=10, output_code=20, **errors)
    trial = Trial(candidate, "the cheapest", None, 1.0, outcome)
    return Search(60.0, [trial], half, stopped, seconds=2.0)


def told(search, space=SPACE):
    return " ".join(explain(search, space))


def test_it_names_choice_errors_and_shares():
    text = told(found(error=0.05, training_error=0.04, oracle=0.03))
    assert "two-scale affine was the only candidate: mean relative L2 error 5 % on" in text
    assert "can express): 3 %; error on training fields: 4 %" in text
    assert "representation 36 %" in text
    assert "data 36 %" in text
    assert "predictor 28 %" in text


def test_a_predictor_that_learns_too_little():
    text = told(found(error=0.05, training_error=0.05, oracle=0.001))
    assert "A nonlinear predictor would help" in text
    assert "samples would" not in text
    learned = found(error=0.05, training_error=0.05, oracle=0.001)
    worse = Outcome(0.1, 0.1, 0.001, 10, 20)
    learned.trials.append(Trial(Candidate(predictor="kernel"), "predictor", 1.0, 1.0, worse))
    assert "A longer input code would help" in told(learned)


def test_more_samples_by_what_half_of_them_lose():
    errors = {"error": 0.02, "training_error": 0.001, "oracle": 0.001}
    text = told(found(half=0.04, **errors))
    assert "the error is 4 %, so twice as many should give about 1 %" in text
    assert "symmetries=square" in text
    assert "symmetries=square" not in told(found(**errors), space_of((16, 16), 100, "square"))
    assert "More samples would help little" in told(found(half=0.021, **errors))
    assert "More samples would help little" in told(found(half=0.019, **errors))
    bounded = told(found(half=0.08, error=0.02, training_error=0.016, oracle=0.016))
    assert "twice as many should give about 1.61 %" in bounded, "no less than the oracle error"


def test_a_search_cut_short_asks_for_time():
    errors = {"error": 0.02, "training_error": 0.001, "oracle": 0.001}
    text = told(found(stopped="the next candidate, a, would take about 9 s", **errors))
    assert "; the next candidate, a, would take about 9 s." in text
    assert "A longer budget may help." in text
    text = told(found(stopped="interrupted", **errors))
    assert "in 2 s of 60 s; interrupted." in text
    assert "A search without interruption may find a better surrogate." in text


def test_longer_codes_that_were_tried_are_not_asked_for():
    limited = found(error=0.05, training_error=0.05, oracle=0.05)
    longer = Outcome(0.06, 0.06, 0.05, 10, output_code=40)
    limited.trials.append(Trial(Candidate(code=1), "+ code", 1.0, 1.0, longer))
    text = told(limited)
    assert "longer codes were no better" in text
    assert "a code longer than" not in text


def test_an_exact_fit_has_no_parts_to_name():
    text = told(found(error=3e-8, training_error=0.0, oracle=1e-8))
    assert "the limit of single precision" in text
    assert "would help" not in text
    assert "squared error" not in text


def test_a_gpu_is_for_those_who_have_none():
    kernel = replace(SPACE.first, predictor="kernel")
    learned = found(error=0.05, training_error=0.05, oracle=0.001, candidate=kernel)
    assert "A larger network would help, trained on a GPU" in told(learned)
    text = told(learned, replace(SPACE, accelerated=True))
    assert "A larger network would help, trained for longer" in text
    assert "GPU" not in text
