"""Sentences of the pages on serving and inverting, from made-up records."""

from twoscale.files import write_json
from twoscale_lab.report.serve_documents import inversion_text, load_sentences

LOAD = {
    "clients": 64,
    "load_before": 3.21,
    "seconds": 30.2,
    "grid": "32x32",
    "answers": 12345,
    "requests_per_second": 411.4,
    "wrong_answers": 0,
    "errors": {"error 503": 2, "error OSError": 1},
    "largest_relative_difference": 6e-7,
    "memory_before_mb": 300.1,
    "memory_after_mb": 301.9,
    "server_cpu_seconds": 21.0,
    "environment": {"commit": "abc"},
}
CHAIN = {
    "exact_solves": 1001,
    "accepted": 0.25,
    "effective_samples": 50.0,
    "solves_per_effective_sample": 20.02,
    "seconds": 9.6,
}
INVERSION = {
    "setup": {"side": 32, "coefficients": 32, "noise": 0.05, "steps": 1000},
    "observations": 169,
    "surrogate": {"training": 2000, "mean_relative_l2": 0.005},
    "map": {"gradients": 40, "medium_error": 0.05},
    "chains": {
        "exact": CHAIN,
        "delayed": CHAIN | {"exact_solves": 90, "solves_per_effective_sample": 1.8},
    },
    "agreement": {
        "mean_difference_in_sd": 0.1,
        "sd_difference": 0.05,
        "mean_error_of_medium": 0.06,
    },
    "saved": {"needed_without_surrogate": 1001.0, "used": 90, "saved": 911.0, "training": 2000},
    "environment": {"commit": "abc"},
}


def test_a_load_in_sentences(tmp_path):
    write_json(tmp_path / "serve.json", LOAD)
    text = load_sentences(tmp_path)
    assert "64 clients asked for 30 s" in text
    assert "12,345 answers, 411 a second. Wrong answers: 0; errors: 3." in text
    assert "load average was 3.2 before" in text
    assert "300 MB before and 302 MB after" in text


def test_an_inversion_in_sentences(tmp_path):
    write_json(tmp_path / "inversion.json", INVERSION)
    other = {"setup": {"noise": 0.02}, "chains": {"exact": CHAIN, "delayed": CHAIN}}
    write_json(tmp_path / "inversion-low-noise.json", other)
    text = inversion_text(tmp_path)
    assert "169 values with noise of 5 %" in text
    assert "| delayed acceptance | 1,000 | 90 | 25 | 50 | 10 |" in text
    assert "911 solves were saved" in text
    assert "needs 11.1 times fewer solves" in text
    assert "With noise of 2 % instead of 5 % it needs 1.0 times fewer" in text
    assert "differ by about 0.20 standard deviations" in text
