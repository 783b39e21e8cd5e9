"""The tables of the page on trust, from a made-up record."""

from twoscale.files import write_json
from twoscale_lab.report.trust_documents import trust_tables

ROW = {
    "problem": "darcy",
    "equation": True,
    "method": "fno",
    "mean_error": 0.0123,
    "mean_radius": 0.02,
    "narrower_by": 0.3,
    "coverage": 0.9512,
    "band_coverage": 0.9488,
    "seconds": {"prediction": 2e-5, "flags": 1e-6, "ratio": 0.05},
}
RECORD = {
    "level": 0.95,
    "size": {"side": 64, "fresh": 5000, "calibration": 10000},
    "standard_deviation_of_coverage": 0.0038,
    "coverage": [ROW, ROW | {"equation": False, "seconds": {"prediction": 3e-5, "flags": 2e-6}}],
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
    assert "A flag takes 1 to 2 µs per field on some GPU, a prediction 20 to 30 µs." in text
