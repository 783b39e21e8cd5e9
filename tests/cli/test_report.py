import json
import shlex

import pytest

from tests.cli.outcome import contents, refused
from twoscale.data import Dataset, generate
from twoscale.files import read_sums
from twoscale.problems import Poisson
from twoscale.run import Run, RunRequest, fit_runs


@pytest.fixture(scope="module")
def seeds(data, tmp_path_factory):
    """A folder of two seeds; tests write nothing but pages into it."""
    folder = tmp_path_factory.mktemp("runs") / "seeds"
    settings = {"predictor": "affine"}
    requests = [RunRequest(folder / f"seed-{k}", "global", k, settings) for k in (0, 10)]
    fit_runs(Dataset(data), requests)
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
    refused(twoscale("report", run), "report.html exists already", "overwrite")
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


def test_bad_runs_are_refused(twoscale, seeds, saved, tmp_path):
    run = seeds / "seed-0"
    refused(twoscale("report", saved / "local"), "is a surrogate saved from Python, not a run")
    refused(twoscale("report", run, "--out", tmp_path), "is a folder", "give a file")
    refused(twoscale("report", run, "--data", tmp_path / "no.zarr"), "does not exist")
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


def test_the_suggested_command_runs(done, twoscale, seeds, monkeypatch, tmp_path):
    """All options that it has are known, and its settings are those of the run."""
    answer = json.loads(
        twoscale("report", seeds / "seed-0", "--json", "--out", tmp_path / "a.html").out
    )
    command = next(
        one["command"] for one in answer["runs"]["seed-0"]["suggestions"] if one["command"]
    )
    words = shlex.split(command)
    words[words.index("--out") + 1] = str(tmp_path / "next")
    done(*words[1:], "--json", *(() if "--method" in words else ("--budget", "1s")))
