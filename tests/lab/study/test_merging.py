"""Records of several machines become one."""

import pytest

from tests.lab.study.leaderboard.board import board_record
from tests.lab.study.synthetic import ENVIRONMENT, make_record, write_record
from twoscale.errors import TwoscaleError
from twoscale_lab.study.folder import merge_folders, merge_records, read_records

HERE, THERE = "navier-stokes-64 *training=312", "navier-stokes-64 *training=1250"


def test_cells_of_both_records_keep_their_environments():
    other = board_record(THERE) | {"environments": [ENVIRONMENT | {"device_name": "Another"}]}
    both = merge_records([board_record(HERE), other])
    assert len(both["cells"]) == 20
    names = {
        cell["training"]: both["environments"][cell["environment"]]["device_name"]
        for cell in both["cells"]
    }
    assert names == {312: "An Imagined GPU", 1250: "Another"}


def test_the_last_record_of_a_cell_counts_and_ends_its_failure():
    first, second = board_record(HERE, error=0.01), board_record(HERE, error=0.02)
    gone, left = (
        {"case": "navier-stokes-64 fno", "seed": 0, "error": "no room", "key": key}
        for key in (first["cells"][0]["key"], "other")
    )
    merged = merge_records([first | {"failed": [gone, left]}, second])
    assert merged["cells"] == second["cells"]
    assert merged["failed"] == [left]


def test_scales_do_not_mix():
    with pytest.raises(TwoscaleError, match="are at the scales small and paper"):
        merge_records([board_record(HERE), board_record(scale="small")])


def test_folders_are_merged_into_a_study_folder(tmp_path):
    headline = make_record("headline", ["poisson-128 local"])
    for name, records in {
        "a": [board_record(HERE), headline],
        "b": [board_record(THERE)],
        "c": [board_record("darcy-fno-85 *")],
    }.items():
        for record in records:
            write_record(tmp_path / name, record, fields=False)
    out = tmp_path / "out"
    written = merge_folders([tmp_path / "a", tmp_path / "b"], out)
    assert sorted(path.name for path in written) == ["headline.json", "leaderboard.json"]
    merge_folders([tmp_path / "c"], out)
    counts = {record["study"]: len(record["cells"]) for record in read_records(out)}
    assert counts == {"headline": len(headline["cells"]), "leaderboard": 30}
    (tmp_path / "empty").mkdir()
    with pytest.raises(TwoscaleError, match="has no records of studies"):
        merge_folders([tmp_path / "empty"], out)
