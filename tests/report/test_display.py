import math

import pytest

from tests.surrogate.tiny import make
from twoscale.report import display
from twoscale.representation import pca_stages
from twoscale.runtime.stages import STAGES


@pytest.mark.parametrize("kind", ["percent", "plain", "power", "short", "count", "seconds"])
def test_what_is_absent_is_a_dash(kind):
    assert display.number(None, kind) == display.number(math.nan, kind) == display.ABSENT


def test_times_have_three_figures():
    texts = [display.number(one, "seconds") for one in (0.0123, 1.234, 12.34, 1234.5)]
    assert texts == ["0.012", "1.23", "12.3", "1234"]


def test_a_spread_is_as_precise_as_its_mean():
    assert display.with_spread(218.6, 15.84, "seconds") == "219 ± 16"
    assert display.with_spread(0.01149, 0.00022, "percent") == "1.149 ± 0.022"
    assert display.with_spread(4.25e-8, 2.11e-9, "power") == "(4.25 ± 0.21)e-08"
    assert display.with_spread(162, 0.0, "count") == "162"
    assert display.with_spread(0.5, None, "plain") == "0.5000"


def test_the_seconds_of_every_stage_of_a_fit_have_a_name(poisson16):
    fitted = [make(name).fit(*poisson16) for name in ("refinement", "three-scale", "fno")]
    tuned = fitted[1].finetune(*poisson16, epochs=1, objective="A1")
    for surrogate in (*fitted, tuned):
        timings = surrogate.evaluate(*poisson16)["timings"]
        assert timings.keys() - STAGES.keys() - {*pca_stages(), "total"} == set()


METRICS = {
    "mre": 0.01234567,
    "oracle_mre": None,
    "ssim": 0.98765,
    "value_trace_error": 7.0,
    "normal_derivative_trace_error": 8.0,
    "common_seams": {"value_trace_error": 1.234e-5, "normal_derivative_trace_error": math.nan},
    "residual_rms": 0.12345,
    "output_code": 162,
    "timings": {"total": 12.34},
}


def test_a_row_has_a_cell_for_every_heading_and_shows_the_common_seams():
    assert display.metric_header()[0] == "method"
    row = display.metric_cells(METRICS)
    assert len(row) == len(display.metric_header()) - 1 == len(display.METRIC_COLUMNS)
    nothing = display.ABSENT
    assert row == [nothing, "1.235", nothing, "0.9877", "1.23e-05", nothing, "0.123", "162", "12.3"]


def test_the_note_explains_the_headings():
    for heading in ("mean", "MRE", "oracle", "seam u", "seam du", "residual", "code", "s:"):
        assert heading in display.METRIC_NOTE
