import errno
import json
import os
import shlex

import pytest

from tests.cli.outcome import contents, refused
from tests.lab.study.synthetic import make_record, write_record
from tests.lab.study.tiny import TEXT
from twoscale.data import Dataset, generate
from twoscale.files import read_sums, working
from twoscale.problems import Poisson
from twoscale.run import Run, fit_runs

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


@pytest.fixture
def studies(tmp_path):
    write_record(tmp_path / "records", make_record("mine", CASES), fields=False)
    return tmp_path


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_report_does_not_replace_a_folder(twoscale, studies, overwrite):
    before = contents(studies)
    refused(twoscale("report", studies, "--out", studies, *overwrite), "is a folder", "give a file")
    assert contents(studies) == before


def test_a_report_is_replaced_only_if_asked(twoscale, studies):
    assert twoscale("report", studies).status == 0
    (studies / "report.html").write_text("changed")
    before = contents(studies)
    refused(twoscale("report", studies), "report.html exists already", "--overwrite")
    assert contents(studies) == before
    assert twoscale("report", studies, "--overwrite").status == 0
    assert (studies / "report.html").read_text(encoding="utf-8").startswith("<!doctype")
    assert not list(studies.rglob("*.twoscale-work"))


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_somebody_elses_figures_are_kept(twoscale, studies, overwrite):
    (studies / "figures").mkdir()
    (studies / "figures" / "mine.png").write_bytes(b"mine")
    before = contents(studies)
    words = "figures is not the figures of report.html alone, and is not replaced: move it"
    refused(twoscale("report", studies, *overwrite), words)
    assert contents(studies) == before


def test_figures_of_another_page_or_with_other_files_are_kept(twoscale, studies):
    assert twoscale("report", studies).status == 0
    words = "is not the figures of other.html alone"
    refused(twoscale("report", studies, "--out", studies / "other.html", "--overwrite"), words)
    (studies / "figures" / "mine.png").write_bytes(b"mine")
    before = contents(studies)
    refused(twoscale("report", studies, "--overwrite"), "is not the figures of report.html alone")
    assert contents(studies) == before


def test_a_page_is_not_called_as_its_figures(twoscale, studies):
    refused(twoscale("report", studies, "--out", studies / "figures"), "cannot be called figures")
    assert not (studies / "figures").exists()


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
    refused(twoscale("report", folder.parent), "tiny.json is damaged at study: String should match")
    assert contents(tmp_path) == before


def test_an_interrupted_report_leaves_nothing(twoscale, studies, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    before = contents(studies)
    monkeypatch.setattr("twoscale.report.page.Picture.write", interrupt)
    monkeypatch.setattr("twoscale.report.figure_folder.write_json", interrupt)
    assert twoscale("report", studies).status == 130
    assert contents(studies) == before


def test_two_reports_do_not_write_one_page(twoscale, studies):
    with working(studies / "report.html"):
        refused(twoscale("report", studies), "another command is writing")
    assert not (studies / "figures").exists()


def test_a_full_disk_leaves_the_old_report(twoscale, studies, monkeypatch):
    assert twoscale("report", studies).status == 0
    before = contents(studies)

    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("twoscale.report.figure_folder.write_json", fail)
    refused(twoscale("report", studies, "--overwrite"), "cannot write", "No space left on device")
    assert contents(studies) == before


# Runs


@pytest.fixture(scope="module")
def seeds(data, tmp_path_factory):
    """A folder of two seeds; tests write nothing but pages into it."""
    folder = tmp_path_factory.mktemp("runs") / "seeds"
    outs = {seed: folder / f"seed-{seed}" for seed in (0, 10)}
    fit_runs(Dataset(data), outs, method="global", settings={"predictor": "affine"})
    return folder


def test_a_run_gets_its_page_and_keeps_its_checksums(twoscale, seeds):
    run = seeds / "seed-0"
    before = contents(run)
    outcome = twoscale("report", run)
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[-1] == str(run / "report.html")
    assert {name: text for name, text in contents(run).items() if name != "report.html"} == before
    assert "did not write" not in twoscale("check", run).out
    assert twoscale("report", run).status == 0, "a page of ours is replaced"
    (run / "report.html").write_text("mine")
    refused(twoscale("report", run), "report.html exists already", "--overwrite")
    (run / "report.html").unlink()


@pytest.mark.usefixtures("drawn_pages")
def test_a_folder_of_seeds_is_compared(twoscale, seeds, tmp_path):
    out = tmp_path / "seeds.html"
    outcome = twoscale("report", seeds, "--out", out, "--json")
    assert outcome.status == 0, outcome.err
    answer = json.loads(outcome.out)
    assert answer["out"] == str(out)
    assert list(answer["runs"]) == ["seed-0", "seed-10"]
    numbers = answer["runs"]["seed-0"]
    assert 0 < numbers["oracle_mre"] <= numbers["mre"] <= numbers["worst_error"]
    assert sum(numbers["shares"].values()) == pytest.approx(1)
    assert numbers["suggestions"][0]["text"]
    page = out.read_text(encoding="utf-8")
    for words in (
        "Over their seeds the error is",
        "Global PCA-Net with predictor affine was fitted on 96 samples of p16.zarr",
    ):
        assert words in page
    assert "Not drawn" not in page


def test_bad_runs_are_refused(twoscale, seeds, saved, studies, tmp_path):
    run = seeds / "seed-0"
    refused(twoscale("report", run, studies), "holds no run", "folder of studies is given alone")
    refused(twoscale("report", saved / "local"), "is a surrogate saved from Python, not a run")
    refused(twoscale("report", run, "--out", tmp_path), "is a folder", "give a file")
    refused(twoscale("report", run, "--data", tmp_path / "no.zarr"), "does not exist")
    refused(twoscale("report", studies, "--data", tmp_path / "no.zarr"), "--data is for reports")
    assert not (run / "report.html").exists()


def test_other_data_are_shown(twoscale, seeds, tmp_path):
    other = tmp_path / "other.zarr"
    generate(Poisson(), other, resolution=16, samples=12, seed=5)
    command = ("report", seeds / "seed-0", "--data", other, "--out", tmp_path / "other.html")
    (numbers,) = json.loads(twoscale(*command, "--json").out)["runs"].values()
    assert numbers["samples"] == 12
    assert numbers["mre"] == pytest.approx(
        json.loads(twoscale("evaluate", seeds / "seed-0", "--data", other, "--json").out)["mre"]
    )


def test_other_data_are_shown_where_those_of_the_run_are_gone(
    twoscale, run_folder, tmp_path, monkeypatch
):
    other = tmp_path / "other.zarr"
    generate(Poisson(), other, resolution=16, samples=3, seed=7)
    monkeypatch.setattr("twoscale.run.folder.reopen_data", lambda described: Dataset("gone.zarr"))
    refused(twoscale("report", run_folder, "--out", tmp_path / "a.html"), "gone.zarr")
    outcome = twoscale("report", run_folder, "--data", other, "--out", tmp_path / "a.html")
    assert outcome.status == 0, outcome.err


@pytest.mark.usefixtures("drawn_pages")
def test_a_search_ends_with_its_page_and_three_commands(twoscale, data, tmp_path):
    run = tmp_path / "run"
    outcome = twoscale("fit", data, "--budget", "1s", "--out", run)
    assert outcome.status == 0, outcome.err
    _, _, end = outcome.out.partition("Next:\n")
    commands = [line.strip() for line in end.splitlines() if line.startswith("    ")]
    assert len(commands) == 3
    assert commands[0] == f"python -m webbrowser {run / 'report.html'}"
    assert commands[1] == f"twoscale predict {run} inputs.npy --out predictions.npy"
    page = (run / "report.html").read_text(encoding="utf-8")
    explanation = Run.open(run).search["explanation"]
    for words in ("The search", explanation[0], 'id="candidates"'):
        assert words in page
    assert "report.html" not in read_sums(run)


def test_the_suggested_command_runs(twoscale, seeds, monkeypatch, tmp_path):
    """All options that it has are known, and its settings are those of the run."""
    answer = json.loads(
        twoscale("report", seeds / "seed-0", "--json", "--out", tmp_path / "a.html").out
    )
    command = next(
        one["command"] for one in answer["runs"]["seed-0"]["suggestions"] if one["command"]
    )
    words = shlex.split(command)
    words[words.index("--out") + 1] = str(tmp_path / "next")
    outcome = twoscale(*words[1:], "--json", *(() if "--method" in words else ("--budget", "1s")))
    assert outcome.status == 0, outcome.err
