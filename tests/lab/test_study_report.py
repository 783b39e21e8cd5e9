"""The command that writes the page of studies."""

import json

import pytest

from tests.cli.outcome import contents, refused
from tests.lab.study.synthetic import make_record, write_record
from tests.lab.study.tiny import TEXT

pytestmark = pytest.mark.usefixtures("without_drawing")

CASES = ["poisson-128 local", "poisson-128 two-scale"]


def test_report_writes_the_page_and_says_where(twoscale, tmp_path):
    write_record(tmp_path / "records", make_record("mine", CASES))
    outcome = twoscale("study", "report", tmp_path)
    assert outcome.status == 0, outcome.err
    assert str(tmp_path / "report.html") in outcome.out
    assert "mine" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_bad_folders_are_refused(twoscale, tmp_path):
    refused(twoscale("study", "report", tmp_path / "nowhere"), "holds no records")
    (tmp_path / "broken.json").write_text("{")
    refused(twoscale("study", "report", tmp_path), "broken.json", "not JSON")
    assert not (tmp_path / "report.html").exists()


def test_a_study_of_ones_own_is_shown_as_its_file_says(twoscale, tmp_path):
    text = TEXT.replace("title: All", "title: What I ask").replace(
        "{method: local}", "{method: local, label: plain one}"
    )
    (tmp_path / "mine.yaml").write_text(text)
    arguments = ("--out", tmp_path / "out", "--seeds", "0", "--only", "local")
    assert twoscale("study", "run", tmp_path / "mine.yaml", *arguments).status == 0
    assert twoscale("study", "report", tmp_path / "out").status == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for words in ("Does the machinery work?", "What I ask", "plain one"):
        assert words in page
    assert [path.name for path in (tmp_path / "out" / "figures").glob("*.png")] == [
        "mine-1-qualitative.png"
    ]


@pytest.fixture
def studies(tmp_path):
    write_record(tmp_path / "records", make_record("mine", CASES), fields=False)
    return tmp_path


def test_a_report_is_replaced_only_if_asked(twoscale, studies):
    assert twoscale("study", "report", studies).status == 0
    (studies / "report.html").write_text("changed")
    before = contents(studies)
    refused(twoscale("study", "report", studies), "report.html exists", "overwrite")
    assert contents(studies) == before
    assert twoscale("study", "report", studies, "--overwrite").status == 0
    assert (studies / "report.html").read_text(encoding="utf-8").startswith("<!doctype")
    assert not list(studies.rglob("*.twoscale-work"))


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_somebody_elses_figures_are_kept(twoscale, studies, overwrite):
    (studies / "figures").mkdir()
    (studies / "figures" / "mine.png").write_bytes(b"mine")
    before = contents(studies)
    words = "figures is not the figures of report.html alone, and is not replaced: move it"
    refused(twoscale("study", "report", studies, *overwrite), words)
    assert contents(studies) == before


def test_figures_of_another_page_or_with_other_files_are_kept(twoscale, studies):
    command = ("study", "report", studies, "--overwrite")
    refused(twoscale(*command, "--out", studies / "figures"), "cannot be called figures")
    assert not (studies / "figures").exists()
    assert twoscale(*command).status == 0
    refused(twoscale(*command, "--out", studies / "other.html"), "figures of other.html alone")
    (studies / "figures" / "mine.png").write_bytes(b"mine")
    before = contents(studies)
    refused(twoscale(*command), "figures of report.html alone")
    assert contents(studies) == before


def test_a_record_cannot_write_outside_of_the_reports_folder(twoscale, tmp_path):
    """A study's name is a part of its figures' names."""
    (tmp_path / "tiny.yaml").write_text(TEXT.replace("figures:", "figures: [{kind: bars}] #"))
    arguments = ("--out", tmp_path / "run", "--seeds", "0", "--only", "local")
    assert twoscale("study", "run", tmp_path / "tiny.yaml", *arguments).status == 0
    record = json.loads((tmp_path / "run" / "records" / "tiny.json").read_text())
    del record["checksum"]
    folder = tmp_path / "a" / "b" / "records"
    folder.mkdir(parents=True)
    (folder / "tiny.json").write_text(json.dumps(record | {"study": "../../../outside"}))
    before = contents(tmp_path)
    refused(
        twoscale("study", "report", folder.parent),
        "tiny.json is damaged at study: String should match",
    )
    assert contents(tmp_path) == before
