"""Three of the tasks of scripts/people_tasks.py, smaller and in this process."""

import people_tasks as tasks
import pytest

from tests.problems.example import load_example, pretend_installed


@pytest.fixture
def run(twoscale):
    def printed(*arguments):
        outcome = twoscale(*arguments)
        assert outcome.status == 0, outcome.err
        return outcome.out

    return printed


@pytest.mark.usefixtures("without_pages")
def test_own_npz_to_predictions(run, tmp_path):
    small = {"samples": 60, "budget": "1s", "largest": 0.5}
    assert tasks.own_npz_to_predictions(run, tmp_path, **small)["relative error"] > 0


@pytest.mark.usefixtures("without_pages")
def test_add_an_equation(run, tmp_path, monkeypatch):
    load_example()
    (tmp_path / "installed").mkdir()
    pretend_installed(tmp_path / "installed", monkeypatch)
    fit = ("--method", "global", "--set", "predictor=affine")
    assert 0 < tasks.add_an_equation(run, tmp_path, samples=60, fit=fit)["relative error"] < 0.5


@pytest.mark.usefixtures("without_drawing")
def test_find_out_why_the_error_is_large(run, tmp_path):
    small = {"samples": 60, "epochs": 3, "resolution": 16}
    found = tasks.find_out_why_the_error_is_large(run, tmp_path, **small)
    assert found["advice"].startswith("twoscale fit")
    assert found["error after"] < found["error before"]
