"""The sentences of the demo's page are right whatever the numbers are."""

from dataclasses import replace

from twoscale.report.comparison import (
    Shown,
    best_sentence,
    relation,
    result_sentences,
    seam_sentences,
    table_rows,
)
from twoscale.report.comparison_figures import Look
from twoscale.report.display import ABSENT

NAMES = {"search": "Search (X + affine)", "local": "P", "overlap": "O", "two-scale": "T"}


def shown(errors, values, slopes):
    return {
        name: Shown(
            Look(title, "#000000", "o"),
            {
                "mre": error,
                "common_seams": {
                    "value_trace_error": value,
                    "normal_derivative_trace_error": slope,
                },
                "samples": 400,
                "timings": {"total": 17.0, "inference": 0.1},
            },
        )
        for (name, title), error, value, slope in zip(
            NAMES.items(), errors, values, slopes, strict=True
        )
    }


GOOD = shown([0.0004, 0.05, 0.03, 0.02], [1e-6, 4e-4, 2e-5, 3e-5], [2e-4, 3e-2, 1e-3, 4e-3])
BAD = shown([0.08, 0.01, 0.02, 0.02], [1e-4, 1e-4, 2e-5, 1e-5], [1e-3, 2e-3, 2e-3, 1e-3])


def test_the_result_names_the_errors_of_search_and_paper():
    assert result_sentences(GOOD) == [
        "Search (X + affine) predicts 400 test fields with an error of 0.04 %, after 17 s of "
        "search.",
        "The error of the paper's T is 50 times larger: 2 %, after 17 s.",
    ]
    assert "is 4.0 times smaller: 2 %" in result_sentences(BAD)[1]


def test_an_exact_filter_is_explained():
    exact = shown([3.2e-7, 0.05, 0.03, 0.02], *[[1e-9, 4e-4, 2e-5, 3e-5]] * 2)
    found = replace(exact["search"], predictor="filter")
    first, why, paper = result_sentences(exact | {"search": found})
    assert "an error of 0.000032 %, after" in first
    assert why.startswith("That is the limit of single precision. Poisson's equation multiplies")
    assert "is 62,000 times larger: 2 %" in paper
    assert table_rows([found])[1][0][1] == "0.000032"
    for other in (exact["search"], replace(GOOD["search"], predictor="filter")):
        assert len(result_sentences(exact | {"search": other})) == 2


def test_seams_are_told_as_they_are():
    assert seam_sentences(GOOD)["overlap"].endswith(
        "Compared with T, its error is 1.5 times larger. At patch borders its error of the value "
        "is 1.5 times smaller, and its error of the slope is 4.0 times smaller."
    )
    assert seam_sentences(BAD)["overlap"].endswith(
        "Compared with T, its error is about the same. At patch borders its error of the value is "
        "2.0 times larger, and its error of the slope is 2.0 times larger."
    )
    assert "2.0 times larger" in seam_sentences(BAD)["two-scale"]  # than plain patches


def test_the_best_are_named():
    assert best_sentence(GOOD) == (
        "Of these 4, Search (X + affine) has the smallest error. At patch borders Search (X + "
        "affine) has the smallest errors of value and slope."
    )
    assert best_sentence(BAD) == (
        "Of these 4, P has the smallest error. At patch borders T has the smallest error of the "
        "value, and Search (X + affine) that of the slope."
    )


def test_a_number_that_is_zero_has_no_factor():
    assert [relation(0.0, 1.0), relation(1.0, 0.0), relation(0.0, 0.0)] == [
        "smaller",
        "larger",
        "about the same",
    ]


def test_the_table_has_few_columns_unless_asked():
    header, rows = table_rows(GOOD.values())
    assert header == ["method", "MRE %", "seam u", "seam du", "residual", "s"]
    assert rows[0] == ["Search (X + affine)", "0.040", "1.00e-06", "2.00e-04", ABSENT, "17.0"]
    assert len(table_rows(GOOD.values(), ["mre"])[0]) == 2
