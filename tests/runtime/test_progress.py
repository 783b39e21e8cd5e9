import io
import sys

import numpy as np
import pytest

from twoscale import Surrogate, fit_auto, fit_together
from twoscale.errors import TwoscaleError
from twoscale.runtime.progress import TextBar, progress_bars, reporting


@pytest.fixture(scope="module")
def pairs():
    x = np.random.default_rng(0).standard_normal((40, 8, 8))
    return x, x.cumsum(axis=2)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def affine():
    return Surrogate("global", predictor="affine", device="cpu")


@pytest.fixture
def stream():
    return io.StringIO()


def test_a_line_is_rewritten_in_a_notebook(stream):
    bar = TextBar("fit", stream=stream)
    bar("training", 1, 4, "loss 2")
    bar("training", 2, 4, "too soon to be shown")
    bar("training", 4, 4, "loss 1")
    bar("other", 1, 1, "")
    bar.close()
    first, second, _ = stream.getvalue().split("\n")
    assert "25%|█████               | 1/4 [0:00] loss 2" in first.split("\r")[1]
    assert first.split("\r")[-1].rstrip().endswith("| 4/4 [0:00] loss 1")
    assert "too soon" not in first
    assert "fit other: 100%|█" in second


def test_what_runs_inside_is_named(stream):
    bar = TextBar("search", over="seconds", stream=stream)
    bar("seconds", 3, 9, "1 tried")
    bar._drawn = 0.0
    bar("training", 5, 7, "")
    assert stream.getvalue().rstrip().endswith("| 3/9 [0:00] 1 tried · training 5/7")


def test_a_file_gets_a_line_per_stage_or_per_step_of_the_outer_one(stream):
    bar = TextBar(stream=stream, rewrites=False)
    for done in range(1, 4):
        bar("training", done, 3, "loss 1")
    bar = TextBar("search", over="seconds", stream=stream, rewrites=False)
    for stage, done in (("seconds", 1), ("training", 9), ("seconds", 2)):
        bar(stage, done, 9, "x")
    told = ["training 3 of 3, loss 1", "search: 1 of 9 seconds, x", "search: 2 of 9 seconds, x"]
    assert stream.getvalue().splitlines() == told


@pytest.mark.parametrize("rich", [True, False])
def test_a_terminal_has_a_line_with_and_without_rich(monkeypatch, rich):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress_bars("fit") as report:
        report("training", 2, 2, "")
    with progress_bars("search", over="seconds") as report:
        report("seconds", 1, 9, "one")
        report("training", 1, 2, "two")
    assert "fit training" in sys.stderr.getvalue()
    assert "search" in sys.stderr.getvalue()


def test_what_progress_may_be():
    for given, expected in ((None, None), (False, None), (print, print)):
        with reporting(given) as report:
            assert report is expected
    with pytest.raises(TwoscaleError, match="True, False or a function"):
        reporting("yes")


@pytest.mark.filterwarnings("ignore::twoscale.TwoscaleWarning")
def test_everything_long_shows_its_progress(pairs, capsys):
    x, u = pairs
    surrogate = affine().fit(x, u, progress=True)
    assert "representations 2 of 2" in capsys.readouterr().err
    surrogate.predict(x, progress=True, batch_size=15)
    surrogate.evaluate(x, u, progress=True)
    assert capsys.readouterr().err == "fields 40 of 40\n" * 2
    surrogate.finetune(x, u, objective="A1", epochs=1, progress=True)
    assert "finetuning 1 of 1" in capsys.readouterr().err
    fit_together([affine()], [(x, u, None)], progress=True)
    assert "representations 2 of 2" in capsys.readouterr().err
    fit_auto(x, u, budget=0.01, predictor="affine", device="cpu", progress=True)
    assert "search: 0 of 0 seconds" in capsys.readouterr().err


def test_by_default_nothing_is_shown(pairs, capsys):
    affine().fit(*pairs).predict(pairs[0])
    assert capsys.readouterr() == ("", "")
