import math
from typing import ClassVar

import pytest

from tests.surrogate.tiny import make
from twoscale.parts import PARTS
from twoscale.report import display
from twoscale.report.axes import GREY, stage_look
from twoscale.representation import Chain, pca_stages
from twoscale.runtime.stages import STAGES
from twoscale_lab.study.catalogue import load_study, study_names
from twoscale_lab.study.quantities import TIMED, check_quantity, quantity


@pytest.mark.parametrize(
    "kind", ["percent", "plain", "power", "short", "count", "seconds", "ratio"]
)
def test_what_is_absent_is_a_dash(kind):
    assert display.number(None, kind) == display.number(math.nan, kind) == display.ABSENT


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0123, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1234")],
)
def test_times_have_three_figures(seconds, expected):
    assert display.number(seconds, "seconds") == expected


def test_a_spread_is_as_precise_as_its_mean():
    assert display.with_spread(218.6, 15.84, "seconds") == "219 ± 16"
    assert display.with_spread(0.01149, 0.00022, "percent") == "1.149 ± 0.022"
    assert display.with_spread(4.25e-8, 2.11e-9, "power") == "(4.25 ± 0.21)e-08"
    assert display.with_spread(162, 0.0, "count") == "162"
    assert display.with_spread(0.5, None, "plain") == "0.5000"


@pytest.mark.parametrize("study", study_names())
def test_every_column_of_every_study_has_words_of_its_own(study):
    for table in load_study(study).tables:
        for name in table.columns:
            check_quantity(name)
            assert "_" not in display.display(name).heading


@pytest.mark.parametrize("stage", [*TIMED, *pca_stages()])
def test_every_stage_is_a_quantity_with_words_and_a_look(stage):
    check_quantity(stage)
    assert display.display(stage).unit == "s"
    assert "_" not in display.display(stage).heading
    assert stage_look(stage)[0] != GREY


def test_stages_that_are_drawn_together_look_different():
    for stages in (TIMED, pca_stages()):
        assert len({stage_look(stage) for stage in stages}) == len(stages)


def test_the_stages_of_a_chain_of_ones_own_are_quantities(monkeypatch):
    class Layers(Chain):
        name = "layers"
        stage_titles: ClassVar = {"upper": "upper", "lower_half": "lower half"}

    monkeypatch.setitem(PARTS, "layers", Layers)
    cell = {
        "metrics": {"timings": {"pca_upper": 2.0, "pca_lower_half": 1.0}},
        "retained": {"output": {"ranks": {"lower_half": [3, 4]}}},
    }
    assert quantity(cell, "pca_fit") == 3.0
    assert quantity(cell, "pca_lower_half") == 1.0
    assert quantity(cell, "lower_half_code") == 7
    assert display.display("pca_lower_half").heading == "lower half PCA s"
    assert display.display("lower_half_code").words == "lower half coordinates"


def test_the_seconds_of_every_stage_of_a_fit_have_a_name(poisson16):
    fitted = [make(name).fit(*poisson16) for name in ("refinement", "three-scale", "fno")]
    tuned = fitted[1].finetune(*poisson16, epochs=1, objective="A1")
    for surrogate in (*fitted, tuned):
        timings = surrogate.evaluate(*poisson16)["timings"]
        assert timings.keys() - STAGES.keys() - {*pca_stages(), "total"} == set()
