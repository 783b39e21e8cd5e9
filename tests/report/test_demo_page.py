"""The sentences of the demo's page are right whatever the numbers are."""

from types import SimpleNamespace

from twoscale.report.demo_page import demo_table, result_sentences
from twoscale.report.display import ABSENT


def run(method, error, value, slope, predictor=None):
    """Return what the page asks of a run; a predictor says that a search found it."""
    seams = {"value_trace_error": value, "normal_derivative_trace_error": slope}
    return SimpleNamespace(
        surrogate=SimpleNamespace(method=method),
        search=predictor and {},
        predictor=predictor,
        metrics={"mre": error, "common_seams": seams, "samples": 400},
        fit_seconds=17.0,
    )


def runs(error=0.0004, predictor="affine"):
    return {
        "search": run("two-scale", error, 1e-6, 2e-4, predictor),
        "local": run("local", 0.05, 4e-4, 3e-2),
        "overlap": run("overlap", 0.03, 2e-5, 1e-4),
        "two-scale": run("two-scale", 0.02, 3e-5, 4e-3),
    }


def test_the_result_names_errors_and_times_of_search_and_paper():
    first, second = result_sentences(runs())
    for fact in ("Search (Two-scale + affine)", "400", "0.04 %", "17 s"):
        assert fact in first
    assert "2 %" in second


def test_an_exact_filter_is_explained():
    assert "single precision" in result_sentences(runs(3.2e-7, "filter"))[1]
    assert len(result_sentences(runs(3.2e-7))) == len(result_sentences(runs(1e-4, "filter"))) == 2


def test_the_table_has_few_columns():
    header, rows = demo_table(runs())
    assert header == ["method", "MRE %", "seam u", "seam du", "residual", "fit s"]
    title = "Search (Two-scale + affine)"
    assert rows[0] == [title, "0.040", "1.00e-06", "2.00e-04", ABSENT, "17.0"]
