import math

from twoscale.report import display, tables

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
    assert tables.header()[0] == "method"
    row = tables.cells(METRICS)
    assert len(row) == len(tables.header()) - 1 == len(tables.COLUMNS)
    nothing = display.ABSENT
    assert row == [nothing, "1.235", nothing, "0.9877", "1.23e-05", nothing, "0.123", "162", "12.3"]


def test_the_note_explains_the_headings():
    for heading in ("mean", "MRE", "oracle", "seam u", "seam du", "residual", "code", "s:"):
        assert heading in tables.NOTE
