"""The commands of studies."""

import csv
import json

import pytest

from tests.cli.outcome import contents, refused
from tests.lab.study.leaderboard.board import board_record
from tests.lab.study.synthetic import make_record, write_record
from tests.lab.study.tiny import CASES, TEXT
from twoscale_lab.names import STUDIES


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TEXT)
    return path


def test_list_names_every_study(twoscale):
    outcome = twoscale("study", "list")
    assert outcome.status == 0
    assert all(name in outcome.out for name in STUDIES)
    listed = json.loads(twoscale("study", "list", "--json").out)["studies"]
    assert [study["name"] for study in listed] == list(STUDIES)
    assert listed[0]["cells"] == 33


def test_run_says_what_came_out(twoscale, tiny, tmp_path):
    out = tmp_path / "out"
    outcome = twoscale("study", "run", tiny, "--out", out, "--seeds", "0", "--only", "local")
    assert outcome.status == 0, outcome.err
    assert f"tiny: 1 cells finished, 0 failed; record in {out}/records/tiny.json" in outcome.out
    assert "tiny: 0 of 1 cells" in outcome.err
    again = twoscale(
        "study", "run", tiny, "--out", out, "--seeds", "0", "--only", "local", "--json"
    )
    summary = json.loads(again.out)["tiny"]
    assert (summary["ran"], summary["finished"], summary["failed"]) == (0, 1, [])


def test_dry_run_plans_and_does_nothing(twoscale, tiny, tmp_path):
    out = tmp_path / "out"
    outcome = twoscale("study", "run", tiny, "--out", out, "--dry-run")
    assert outcome.status == 0
    assert "tiny: 6 cells, 0 done, 6 pending, 0 shared with other studies" in outcome.out
    assert "to be generated: poisson-16-100-0" in outcome.out
    assert not out.exists()
    twoscale("study", "run", tiny, "--out", out, "--seeds", "0", "--only", "local")
    before = contents(out)
    plan = json.loads(twoscale("study", "run", tiny, "--out", out, "--dry-run", "--json").out)
    assert plan["tiny"]["cases"][CASES[0]] == {"done": [0], "pending": [1]}
    assert plan["tiny"]["datasets"] == {"poisson-16-100-0": True}
    assert (plan["tiny"]["done"], plan["tiny"]["pending"]) == (1, 5)
    assert contents(out) == before


def test_all_plans_every_study_with_the_methods_it_has(twoscale, tmp_path):
    command = ("study", "run", "all", "--out", tmp_path / "out", "--dry-run", "--json")
    plans = json.loads(twoscale(*command).out)
    assert list(plans) == list(STUDIES)
    assert plans["mechanism"]["shared"] > 0
    plans = json.loads(twoscale(*command, "--only", "fno").out)
    assert plans["headline"]["cells"] == 3
    assert plans["mechanism"]["cells"] == 0


def test_failures_are_told_at_the_end(twoscale, tiny, tmp_path):
    """Sixteen coarse nodes do not go with as few training fields."""
    tiny.write_text(TEXT.replace("method: two-scale,", "method: two-scale, training: 10,"))
    outcome = twoscale("study", "run", tiny, "--out", tmp_path / "out", "--seeds", "0")
    assert outcome.status == 2
    assert "Traceback" not in outcome.err
    last = outcome.err.splitlines()[-1]
    assert "2 cells failed, the first of them poisson-16 two-scale training=10 seed 0" in last
    assert "run again to retry" in last
    assert "1 cells finished, 2 failed" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nothing"], ["no study is called 'nothing'", "headline"]),
        (["run", "no.yaml"], ["no.yaml does not exist"]),
        (
            ["run", "headline", "--scale", "large"],
            ["--scale", "'large' is not one of 'paper', 'small'"],
        ),
        (["run", "headline", "--only", "magic"], ["has no method 'magic'", "two-scale+A3"]),
        (["run", "headline", "--seeds", "many"], ["seeds are given like"]),
        (["run", "headline", "--device", "tpu"], ["tpu"]),
    ],
)
def test_mistakes_are_told_in_one_sentence(twoscale, tmp_path, arguments, words):
    out = tmp_path / "out"
    refused(twoscale("study", *arguments, "--out", out), *words)
    assert not out.exists()


def test_compare_lists_what_is_missing(twoscale, tiny, tmp_path):
    out = tmp_path / "out"
    refused(twoscale("study", "compare", tmp_path), "has no records of studies")
    twoscale("study", "run", tiny, "--out", out, "--seeds", "0", "--only", "local")
    outcome = twoscale("study", "compare", out)
    assert outcome.status == 0
    assert "No record: " in outcome.out
    assert "headline" in outcome.out
    assert "No record: " in twoscale("study", "compare", out, "--all").out
    before = contents(out)
    found = json.loads(twoscale("study", "compare", out, "--json").out)
    cells = found["cells"]
    assert {"study", "cell", "metric", "paper", "ours", "verdict"} <= set(cells[0])
    assert {cell["verdict"] for cell in cells} == {"missing"}
    assert contents(out) == before
    table = tmp_path / "tables" / "all.csv"
    assert str(table) in twoscale("study", "compare", out, "--csv", table).out
    with table.open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [row["cell"] for row in written if row["verdict"]] == [row["cell"] for row in cells]
    assert len(written) == len(cells) + len(found["times"])


def test_compare_replaces_a_table_only_if_asked(twoscale, tmp_path):
    write_record(tmp_path, make_record("mechanism", ["poisson-128 local"]), fields=False)
    table = tmp_path / "mine.csv"
    table.write_text("mine")
    command = ("study", "compare", tmp_path, "--csv")
    refused(twoscale(*command, table), "mine.csv exists already: choose another --csv or pass")
    assert table.read_text() == "mine"
    refused(twoscale(*command, tmp_path, "--overwrite"), "is a folder: give a file")
    assert twoscale(*command, table, "--overwrite").status == 0
    assert table.read_text().startswith("study,table,cell")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mechanism.json", "mine.csv"]


def test_compare_ends_with_the_agreement_and_judges_no_time(twoscale, tmp_path):
    cases = ["poisson-128 local", "poisson-128 two-scale"]
    write_record(tmp_path, make_record("mechanism", cases), fields=False)
    lines = twoscale("study", "compare", tmp_path, "--all").out.splitlines()
    assert lines[-1].startswith("In all: ")
    assert " Changes: 3 of 4 match" in lines[-1]
    assert any(" ~ " in line and line.endswith("match") for line in map(str.rstrip, lines))
    found = json.loads(twoscale("study", "compare", tmp_path, "--json").out)
    assert {row["verdict"] for row in found["cells"]} == {"match", "off", "missing"}
    assert {row["verdict"] for row in found["times"]} == {None}
    assert {"total", "pca_fit"} <= {row["metric"] for row in found["times"]}
    assert all(" against " in row["cell"] for row in found["cells"] if row["sd_derived"])


def test_compare_prints_a_page(twoscale, tmp_path):
    """The values that are off, unexplained ones first; --all has every value."""
    cases = ["poisson-128 local", "poisson-128 two-scale", "poisson-128 overlap"]
    write_record(tmp_path, make_record("mechanism", cases), fields=False)
    page = twoscale("study", "compare", tmp_path).out
    everything = twoscale("study", "compare", tmp_path, "--all").out
    assert len(page.splitlines()) <= 40
    assert len(everything.splitlines()) > len(page.splitlines())
    assert "--all shows every value" in page
    assert page.splitlines()[-1] == everything.splitlines()[-1]


def test_compare_holds_the_leaderboard_against_what_others_published(twoscale, tmp_path):
    write_record(tmp_path, board_record("darcy-fno*", error=0.0052), fields=False)
    page = twoscale("study", "compare", tmp_path).out
    assert "published by others" in page
    assert "0.28 (MgFNO)" in page
    assert "0.273 ± 0.018 (search)" in page
    assert "MgNO: not read again" in page
    assert page.splitlines()[-1].startswith("Ahead of all published errors on 1 of 2 benchmarks")
    assert "In all:" not in page  # there is no study of the paper
    board = json.loads(twoscale("study", "compare", tmp_path, "--json").out)["leaderboard"]
    assert [one["verdict"] for one in board].count("not measured yet") == 11
    write_record(tmp_path, board_record("darcy-fno*", scale="small"), fields=False)
    assert "no cell at the paper scale" in twoscale("study", "compare", tmp_path).out


@pytest.mark.parametrize("command", ["compare", "report", "run"])
def test_a_wrong_kind_of_path(twoscale, run_folder, command):
    more = ("--out", "new") if command == "run" else ()
    refused(twoscale("study", command, run_folder, *more), f"{run_folder} is a run", "evaluate")
