import math

import pytest

from twoscale.report import display
from twoscale.report.charts.style import STAGES
from twoscale.study.catalogue import load_study, study_names
from twoscale.study.quantities import check_quantity


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


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_a_quantity(stage):
    check_quantity(stage)
    assert display.display(stage).unit == "s"
