"""The tables of the page on trust, from a made-up record."""

from pathlib import Path

from twoscale.files import write_json
from twoscale.report.documents import generated
from twoscale.report.trust_documents import trust_tables

ROOT = Path(__file__).parents[2]

ROW = {
    "problem": "darcy",
    "equation": True,
    "method": "fno",
    "mean_error": 0.0123,
    "mean_radius": 0.02,
    "narrower_by": 0.3,
    "coverage": 0.9512,
    "band_coverage": 0.9488,
    "seconds": {"ratio": 0.05},
}
RECORD = {
    "level": 0.95,
    "size": {"side": 64, "fresh": 5000, "calibration": 10000},
    "standard_deviation_of_coverage": 0.0038,
    "coverage": [ROW, ROW | {"equation": False, "seconds": {"ratio": 0.01}}],
    "flags": {"darcy": {"fresh": 0.024, "constant": 1.0}},
    "environment": {"commit": "abc", "device_name": "some GPU"},
}


def test_the_record_in_tables(tmp_path):
    write_json(tmp_path / "trust.json", RECORD)
    text = trust_tables(tmp_path)
    assert "5,000 new fields of 64² nodes, at level 0.95, with 10,000 calibration samples" in text
    assert "| darcy | known | fno | 1.23 | 2 | 30 | 95.1 | 94.9 |" in text
    assert "| darcy | unknown | fno |" in text
    assert "| darcy | constant | 100.0 |" in text
    assert "Flags take 1 to 5 % of a prediction's time on some GPU." in text


def test_the_page_is_generated_once_there_is_a_record():
    page, record = ROOT / "docs/trust.md", ROOT / "results/trust.json"
    assert (page in generated(ROOT)) == record.exists()
    assert "<!-- trust: start -->" in page.read_text(encoding="utf-8")
