import json
import re

import pytest

from tests.cli.outcome import contents, refused
from twoscale import TwoscaleError
from twoscale.cli.demo import _check_folder
from twoscale.files import WorkFolder, working


def test_demo_makes_table_runs_and_report(twoscale, tmp_path):
    out = tmp_path / "demo"
    outcome = twoscale("demo", "--out", out, "--samples", 500, "--epochs", 2)
    assert outcome.status == 0, outcome.err
    for method in ("local", "overlap", "two-scale"):
        assert method in outcome.out
        metrics = json.loads((out / "runs" / method / "metrics.json").read_text())
        assert metrics["samples"] == 50
    page = (out / "report.html").read_text()
    assert len(re.findall(r'<img src="data:image/webp;base64,', page)) == 6
    assert "http" not in page
    assert "patch borders" in page
    pictures = {path.name for path in (out / "figures").iterdir()}
    names = ("fields", "residuals", "profile", "errors", "spectra", "densities")
    assert pictures == {"twoscale-figures.json", *(f"{name}.png" for name in names)}
    before = contents(out)
    refused(twoscale("demo", "--out", out), "exists already", "--overwrite")
    assert contents(out) == before
    (out / "figures" / "mine.png").write_bytes(b"mine")
    command = ("demo", "--out", out, "--samples", 500, "--epochs", 1, "--overwrite")
    refused(twoscale(*command), "figures is not the figures of report.html alone", "move it")
    assert contents(out) == before | {"figures/mine.png": b"mine"}
    (out / "figures" / "mine.png").unlink()
    again = twoscale(*command)
    assert again.status == 0, again.err
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["demo.json", "figures", "poisson-64.zarr", "report.html", "runs"]
    )


def test_demo_does_not_touch_other_folders(twoscale, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    outcome = twoscale("demo", "--out", tmp_path)
    assert outcome.status == 2
    assert "holds something else" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_demo_does_not_replace_runs_of_other_folders(twoscale, tmp_path):
    run = tmp_path / "runs" / "two-scale"
    run.mkdir(parents=True)
    (run / "mine.txt").write_text("keep")
    refused(twoscale("demo", "--out", tmp_path, "--overwrite"), "holds something else")
    assert contents(tmp_path) == {"runs/two-scale/mine.txt": b"keep"}


def test_two_demos_do_not_share_a_folder(twoscale, tmp_path):
    out = tmp_path / "demo"
    with working(out / "demo"):
        refused(
            twoscale("demo", "--out", out, "--samples", 500), "another command is making a demo"
        )
    assert not (out / "demo.json").exists()


def test_a_demo_killed_at_its_very_beginning_can_be_run_again(tmp_path):
    """What it leaves is a work folder; somebody's own folder of that kind of name is another."""
    out = tmp_path / "demo"
    WorkFolder(out / "demo").release()
    _check_folder(out, overwrite=False)
    (out / ".mine.twoscale-work").mkdir()
    (out / ".mine.twoscale-work" / "thesis.txt").write_text("keep")
    with pytest.raises(TwoscaleError, match="holds something else"):
        _check_folder(out, overwrite=True)


def test_demo_does_not_touch_a_file(twoscale, tmp_path):
    out = tmp_path / "demo"
    out.write_text("keep")
    outcome = twoscale("demo", "--out", out)
    assert outcome.status == 2
    assert "holds something else" in outcome.err
    assert out.read_text() == "keep"


def test_an_interrupted_demo_can_be_run_again(twoscale, tmp_path):
    """Whether the data was being made or was finished; the output can be read by machines."""

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    out = tmp_path / "demo"
    command = ("demo", "--out", out, "--samples", 500, "--epochs", 1)
    for step, left in (
        ("twoscale.problems.Poisson.solve", ".poisson-64.zarr.twoscale-work"),
        ("twoscale.training.member.mean_loss", "poisson-64.zarr"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(step, interrupt)
            assert twoscale(*command).status == 130
        assert {path.name for path in out.iterdir()} - {"runs"} == {"demo.json", left}
    outcome = twoscale(*command, "--json")
    assert outcome.status == 0, outcome.err
    metrics = json.loads(outcome.out)["methods"]
    assert list(metrics) == ["local", "overlap", "two-scale"]
    assert all(values["mre"] > 0 for values in metrics.values())
    assert (out / "report.html").is_file()
