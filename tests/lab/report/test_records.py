"""The committed records: complete, and in agreement with the paper."""

import csv
import math
from pathlib import Path

import pytest

from twoscale_lab.report.documents import Documents
from twoscale_lab.report.results import read_studies, read_study
from twoscale_lab.study.catalogue import load_study
from twoscale_lab.study.folder import read_record, read_records
from twoscale_lab.study.paper.comparison import compare
from twoscale_lab.study.paper.published import known_explanations

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"


@pytest.mark.parametrize(
    ("method", "oracle"),
    [("global", 0.0754), ("local", 0.048), ("overlap", 0.0228), ("two-scale", 0.00501)],
)
def test_oracles_agree_with_the_paper(method, oracle):
    case = read_study(RESULTS / "study" / "headline.json").case(f"poisson-128 {method}")
    assert case.mean("oracle_mre") == pytest.approx(oracle, rel=0.01)


@pytest.mark.parametrize(
    ("method", "inputs", "within", "outputs"),
    [
        ("global", None, 0, 10),
        ("local", 144, 1, 48),
        ("overlap", 488, 2, 147),
        ("two-scale", 144, 1, 162),
    ],
)
def test_retained_dimensions_are_the_papers(method, inputs, within, outputs):
    case = read_study(RESULTS / "study" / "headline.json").case(f"poisson-128 {method}")
    assert abs(case.mean("output_code") - outputs) <= 1
    if inputs is not None:
        assert abs(case.mean("input_code") - inputs) <= within


def test_what_differs_from_the_paper_is_explained_and_no_explanation_is_stale():
    off = [row for row in read_studies(RESULTS / "study").compared if row.verdict == "off"]
    unexplained = [(row.table, row.cell, row.metric) for row in off if row.explanation is None]
    assert unexplained == []
    assert {row.explanation for row in off} == {one.because for one in known_explanations()}


def test_generated_pages_are_up_to_date():
    for page, text in Documents(ROOT).pages().items():
        assert page.read_text(encoding="utf-8") == text, f"{page.name}: run `make documents`"


def test_the_comparison_is_up_to_date():
    with (RESULTS / "study" / "comparison.csv").open(newline="", encoding="utf-8") as stream:
        written = list(csv.DictReader(stream))
    expected = [row.as_dict() for row in compare(read_records(RESULTS / "study"))]
    hint = (
        "run `twoscale study compare results/study --csv results/study/comparison.csv --overwrite`"
    )
    assert list(written[0]) == list(expected[0]), hint
    assert len(written) == len(expected), hint
    for found, row in zip(written, expected, strict=True):
        for name, value in row.items():
            assert _reads(found[name], value), f"{row['cell']}, {row['metric']}, {name}: {hint}"


def _reads(text, value):
    """Say whether a text is that of a value; machines may differ in the last digits of numbers."""
    if isinstance(value, float):
        return bool(text) and math.isclose(float(text), value, rel_tol=1e-9, abs_tol=1e-12)
    return text == ("" if value is None else str(value))


STUDIES = sorted((RESULTS / "study").glob("*.json"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_records_of_studies_are_of_the_cells_that_are_defined_now(path):
    """Should a default or the hash change, all that was measured would have to be run again."""
    record = read_record(path)
    defined = {cell.key for cell in load_study(record["study"]).cells()}
    assert {cell["key"] for cell in record["cells"]} <= defined
    for environment in record["environments"]:
        assert environment["device_name"]
        assert environment["commit"]
        assert not environment["commit"].endswith("dirty")
