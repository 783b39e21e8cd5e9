from pathlib import Path

import pytest

from tests.lab.study.synthetic import make_record, write_record
from twoscale import TwoscaleError
from twoscale_lab.report.readme import ROWS, readme_parts, results_table, write_images

ROOT = Path(__file__).parents[3]


def test_the_table_has_its_rows_from_the_records():
    lines = results_table(ROOT / "results" / "study").splitlines()
    assert [line.split(" | ")[1] for line in lines[2:]] == [label for _, label in ROWS]
    assert len({line.count("|") for line in lines}) == 1


def test_without_records_the_parts_say_so(tmp_path):
    parts = readme_parts(tmp_path)
    assert parts["results"] == "There are no records yet."
    assert parts["reproduce"].startswith("There are no records yet.")


def test_a_case_that_is_gone_is_named(tmp_path):
    write_record(tmp_path, make_record("beyond", ["poisson-128 two-scale"]), fields=False)
    with pytest.raises(TwoscaleError, match=r"has no FNO on poisson-128, .*: name others"):
        results_table(tmp_path)


def test_the_pictures_come_from_the_records_and_a_demo(tmp_path):
    images, drawn = tmp_path / "docs/images", tmp_path / "demo/figures"
    for folder in (images, drawn):
        folder.mkdir(parents=True)
    (tmp_path / "results").symlink_to(ROOT / "results")
    (drawn / "prediction.png").write_bytes(b"a prediction")
    write_images(tmp_path, tmp_path / "demo")
    assert (images / "hero.png").read_bytes() == b"a prediction"
    assert (images / "error_time.png").read_bytes()[:4] == b"\x89PNG"
