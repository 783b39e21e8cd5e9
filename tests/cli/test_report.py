from tests.cli.outcome import refused
from tests.study.synthetic import make_record, write_record
from tests.study.tiny import TEXT

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


def test_a_study_of_ones_own_is_shown_as_its_file_says(twoscale, tmp_path):
    text = TEXT.replace("title: All", "title: What I ask").replace(
        "{method: local}", "{method: local, label: plain one}"
    )
    (tmp_path / "mine.yaml").write_text(text)
    arguments = ("--out", tmp_path / "out", "--seeds", "0", "--only", "local")
    assert twoscale("study", "run", tmp_path / "mine.yaml", *arguments).status == 0
    assert twoscale("report", tmp_path / "out").status == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for words in ("Does the machinery work?", "What I ask", "plain one"):
        assert words in page
    assert [path.name for path in (tmp_path / "out" / "figures").glob("*.png")] == [
        "mine-1-qualitative.png"
    ]
