import json
import re


def test_demo_makes_table_runs_and_report(twoscale, tmp_path):
    out = tmp_path / "demo"
    outcome = twoscale("demo", "--out", out, "--samples", 500, "--epochs", 2)
    assert outcome.status == 0, outcome.err
    for method in ("local", "overlap", "two-scale"):
        assert method in outcome.out
        metrics = json.loads((out / "runs" / method / "metrics.json").read_text())
        assert metrics["samples"] == 50
    page = (out / "report.html").read_text()
    assert len(re.findall(r'<img src="data:image/png;base64,', page)) == 6
    assert "http" not in page
    assert "patch borders" in page
    again = twoscale("demo", "--out", out, "--samples", 500, "--epochs", 1)
    assert again.status == 0


def test_demo_does_not_touch_other_folders(twoscale, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    outcome = twoscale("demo", "--out", tmp_path)
    assert outcome.status == 2
    assert "holds something else" in outcome.err
