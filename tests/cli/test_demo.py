import json
import re

import pytest

from tests.cli.outcome import refused


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
    assert pictures == {f"{name}.png" for name in names}
    again = ("demo", "--out", out, "--samples", 500, "--epochs", 1)
    refused(twoscale(*again), "exists already", "--overwrite")
    assert twoscale(*again, "--overwrite").status == 0


def test_demo_does_not_touch_other_folders(twoscale, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    outcome = twoscale("demo", "--out", tmp_path)
    assert outcome.status == 2
    assert "holds something else" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert (tmp_path / "mine.txt").read_text() == "keep"


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
        assert sorted(path.name for path in out.iterdir()) == sorted(["demo.json", left])
    outcome = twoscale(*command, "--json")
    assert outcome.status == 0, outcome.err
    metrics = json.loads(outcome.out)
    assert list(metrics) == ["local", "overlap", "two-scale"]
    assert all(values["mre"] > 0 for values in metrics.values())
    assert (out / "report.html").is_file()
