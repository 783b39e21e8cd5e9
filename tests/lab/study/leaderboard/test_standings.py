"""Where we stand on the benchmarks of others."""

import pytest

from tests.lab.study.leaderboard.board import board_record
from twoscale_lab.study.leaderboard.board import (
    measured_standings,
    standings,
    summary,
    table_rows,
)

PLACE = "navier-stokes-64 *training=1250"


def of(found, problem, **properties):
    """Return the standings of a problem with these properties."""
    chosen = [one for one in found if one.benchmark.problem == problem]
    for name, value in properties.items():
        chosen = [one for one in chosen if getattr(one.benchmark, name) == value]
    return chosen


def test_without_records_nothing_is_measured():
    found = standings([])
    assert {one.verdict for one in found} == {"not measured yet"}
    assert all(one.as_dict()["ours"] == {} for one in found)
    assert measured_standings([]) == measured_standings([board_record(scale="small")]) == []
    assert summary(found) == "None of our errors is measured yet."


def test_the_best_of_ours_is_held_against_the_best_published_error():
    (one,) = of(standings([board_record(PLACE, error=0.008)]), "navier-stokes", training=1250)
    assert one.best == "our search"
    assert one.ours["our search"].mean == pytest.approx(0.0042)
    assert one.ours["our search"].seeds == 2
    assert one.ratio_to(one.benchmark.best) == pytest.approx(0.84)
    assert one.verdict == "ahead"
    assert set(one.ours) == {
        "our search",
        "our encoder",
        "our kernel",
        "our affine map",
        "our FNO",
    }
    plain = one.as_dict()
    assert plain["ratio_to_fno"] == pytest.approx(0.84)
    assert plain["published"][0] == {
        "method": "FNO",
        "percent": "0.50",
        "source": "dehoop2022",
        "caveat": None,
    }
    assert plain["ours"]["our search"]["fit_seconds"] == 90.0  # of all candidates
    assert plain["ours"]["our FNO"]["fit_seconds"] == 4.0
    assert plain["ours"]["our FNO"]["field_seconds"] == pytest.approx(0.005)
    (row,) = table_rows([one])
    assert row[1:] == ["0.50 (FNO)", "0.50 (FNO)", "0.42 ± 0.028 (search)", "0.84", "ahead"]


def test_the_best_of_ours_is_chosen_by_validation_fields_only():
    record = board_record(PLACE)
    for cell in record["cells"]:
        if cell["method"] == "fno":
            cell["metrics"]["validation"]["mean_relative_l2"] = 1e-4
    (one,) = of(standings([record]), "navier-stokes", training=1250)
    assert one.best == "our FNO"
    assert one.ours["our FNO"].mean > one.ours["our search"].mean
    assert one.as_dict()["ours"]["our FNO"]["validation"] == 1e-4
    assert one.ratio_to(one.benchmark.best) == pytest.approx(0.00945 / 0.005)


def test_a_method_without_a_validation_error_is_shown_and_never_chosen():
    record = board_record(PLACE)
    for cell in record["cells"]:
        if cell["method"] == "search":
            del cell["metrics"]["validation"]
    (one,) = of(standings([record]), "navier-stokes", training=1250)
    assert one.best == "our encoder"
    assert one.as_dict()["ours"]["our search"]["validation"] is None
    for cell in record["cells"]:
        cell["metrics"].pop("validation", None)
    found = standings([record])
    (one,) = of(found, "navier-stokes", training=1250)
    assert (one.best, one.verdict) == (None, "no validation error")
    assert table_rows([one])[0][3:] == ["", "", "no validation error"]
    assert "14 are not measured yet" in summary(found)


def test_out_of_distribution_validation_fields_are_those_of_training():
    _, outside = of(standings([]), "cno-wave")
    assert outside.benchmark.quantity == "outside.median_relative_l1"
    assert outside.benchmark.chosen_by == "validation.median_relative_l1"


def test_errors_are_of_the_kind_that_the_papers_report():
    inside, outside = of(standings([board_record("cno-wave*")]), "cno-wave")
    assert inside.ours["our FNO"].mean == pytest.approx(2 * 0.00945)
    assert outside.ours["our FNO"].mean == pytest.approx(4 * 0.00945)
    assert (inside.verdict, outside.verdict) == ("behind", "behind")


def test_the_summary_counts_what_is_ahead_and_what_is_missing():
    found = standings([board_record("darcy-fno*", error=0.005)])
    verdicts = [one.verdict for one in of(found, "darcy-fno")]
    assert verdicts == ["ahead", "nothing published", "behind", "nothing published"]
    assert summary(found) == (
        "Ahead of all published errors on 1 of 2 benchmarks; 11 are not measured yet."
    )
