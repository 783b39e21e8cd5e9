from tests.cli.outcome import refused
from tests.study.synthetic import make_record, write_record

CASES = ["poisson-128 local", "poisson-128 two-scale"]


def test_report_writes_the_page_and_says_where(twoscale, tmp_path):
    write_record(tmp_path / "records", make_record("mine", CASES))
    outcome = twoscale("report", tmp_path)
    assert outcome.status == 0, outcome.err
    assert str(tmp_path / "report.html") in outcome.out
    assert "mine" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_report_can_write_elsewhere(twoscale, tmp_path):
    records = tmp_path / "records"
    write_record(records, make_record("svd-solver", ["poisson-128 local solver=full", CASES[0]]))
    before = sorted(path.name for path in records.iterdir())
    outcome = twoscale("report", records, "--out", tmp_path / "pages" / "a.html")
    assert outcome.status == 0, outcome.err
    assert (tmp_path / "pages" / "a.html").is_file()
    assert any((tmp_path / "pages" / "figures").glob("svd-solver-*.svg"))
    assert sorted(path.name for path in records.iterdir()) == before


def test_bad_folders_are_refused(twoscale, tmp_path):
    refused(twoscale("report", tmp_path / "nowhere"), "holds no records")
    (tmp_path / "broken.json").write_text("{")
    refused(twoscale("report", tmp_path), "broken.json", "not JSON")
    assert not (tmp_path / "report.html").exists()
