"""The leaderboard in the report: a picture, a table, and the text of the documentation."""

import pytest

from tests.lab.study.leaderboard.board import board_record
from tests.lab.study.synthetic import write_record
from twoscale.errors import TwoscaleError
from twoscale_lab.report.charts import draw
from twoscale_lab.report.charts.leaderboard import standings_chart
from twoscale_lab.report.results import read_study
from twoscale_lab.report.study_page import write_report
from twoscale_lab.study.leaderboard.board import standings


def words(figure):
    """Return all texts beside the marks of a chart."""
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_chart_names_others_and_says_what_is_not_measured():
    texts = words(standings_chart(standings([])))
    assert "MgFNO, LaMO, Transolver, LSM, FNO" in texts  # too close for a label each
    assert texts.count("PCA-Net") >= 2  # those with room for one
    assert texts.count("ours: not measured yet") == 15


def test_the_study_draws_its_measurements_with_sources(tmp_path):
    write_record(tmp_path, board_record("darcy-fno*"), fields=False)
    study = read_study(tmp_path / "leaderboard.json")
    figure, table = draw("leaderboard", study, {})
    assert words(figure).count("ours: not measured yet") == 11
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"published by others", "our search", "our FNO"} <= labels
    sources = {row.more["method"]: row.more["source"] for row in table.rows}
    assert sources["our search"] == "measured here, 2 seeds"
    assert "not read again" in sources["MgNO"]


def test_a_small_record_is_not_held_against_published_errors(tmp_path):
    write_record(tmp_path, board_record("darcy-fno*", scale="small"), fields=False)
    study = read_study(tmp_path / "leaderboard.json")
    with pytest.raises(TwoscaleError, match="published errors are for the paper scale"):
        draw("leaderboard", study, {})
    page = write_report(tmp_path).read_text()
    assert "Not drawn: Where we stand" in page
    assert "MgFNO" not in page


def test_the_page_shows_where_we_stand(tmp_path):
    write_record(tmp_path, board_record("darcy-fno*", error=0.0052), fields=False)
    page = write_report(tmp_path).read_text()
    assert "Where we stand, errors in %" in page
    assert "0.273 ± 0.018 (search)" in page
    assert "nothing published" in page
    assert "Other people&#39;s benchmarks" in page
