"""Figures with wrong options, and numbers that cannot be drawn: a remark, never a traceback."""

import pytest

from tests.lab.study.synthetic import make_record
from tests.lab.study.tiny import TEXT
from twoscale.files import write_json
from twoscale.report import axes
from twoscale_lab.report.study_page import write_report
from twoscale_lab.study.catalogue import own_definition, parse_study

CASES = ["poisson-16 local", "poisson-16 two-scale", "poisson-16 two-scale+A1"]
LINE = "figures: [{kind: qualitative, place: poisson-16}]"


def report(folder, figures, change=lambda record: None):
    """Return the page of a study with some figures."""
    study = parse_study(TEXT.replace(LINE, f"figures: [{figures}]"), name="mine")
    record = make_record("mine", CASES, samples=100) | own_definition(study)
    change(record)
    write_json(folder / "mine.json", record)
    return write_report(folder).read_text(encoding="utf-8").replace("&#39;", "'")


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ("{kind: nothing}", "Not drawn: nothing (no figure is of kind 'nothing'"),
        ("{kind: bars, colour: red}", "take no 'colour'"),
        ("{kind: bars, quantities: 3}", "(its options are wrong: TypeError: 'int' object is not"),
        ("{kind: bars, quantities: [[1]]}", "its options are wrong"),
        ("{kind: bars, quantities: []}", "Not drawn: Side by side"),
        ("{kind: bars, rows: 3}", "its options are wrong"),
        ("{kind: bars, where: method}", "its options are wrong"),
        ("{kind: bars, where: {method: {a: b}}}", "none of its cases has been run"),
        ("{kind: bars, caption: [1]}", "its caption is not a text"),
        ("{kind: effects}", "figures of kind effects need a base"),
        ("{kind: effects, base: 3}", "its options are wrong"),
        ("{kind: equivalence, base: 3}", "its options are wrong"),
        ("{kind: equivalence, base: {objective: null}, margins: 3}", "its options are wrong"),
        ("{kind: equivalence, base: {objective: null}, margins: {mre: 3}}", "options are wrong"),
        (
            "{kind: equivalence, base: {objective: null}, margins: {mre: {relative: x}}}",
            "its options are wrong",
        ),
        ("{kind: time-projection, quantity: 3}", "its options are wrong"),
        ("{kind: time-projection, to: x}", "Not drawn: Time against resolution"),
        ("{kind: curves, x: 3}", "its options are wrong"),
        ("{kind: pareto, x: nothing}", "no quantity is called 'nothing'"),
        ("{kind: qualitative, place: [1]}", "its options are wrong"),
        (f"{{kind: curves, quantities: {['mre'] * 101}}}", "has more than 100 entries"),
    ],
)
@pytest.mark.usefixtures("without_drawing")
def test_wrong_options_are_told_on_the_page(figure, words, tmp_path, monkeypatch):
    monkeypatch.setattr("twoscale_lab.report.study_page._first_picture", lambda studies: None)
    assert words in report(tmp_path, figure)


def test_numbers_that_cannot_be_drawn_are_told_on_the_page(tmp_path):
    def change(record):
        for cell in record["cells"]:
            cell["metrics"]["mre"] = -1e99

    text = report(tmp_path, "{kind: interaction}, {kind: oracle-learned}", change)
    assert "Not drawn: Representation and fine-tuning (its numbers cannot be drawn: " in text


def test_errors_of_zero_are_shown(tmp_path):
    def change(record):
        for cell in record["cells"]:
            cell["metrics"] |= {"mre": 0.0, "oracle_mre": 0.0}

    assert "All (Poisson 16²)</span></caption>" in report(tmp_path, "{kind: bars}", change)


def test_a_figure_of_enormous_size_is_not_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(axes, "_LARGEST", 2.0)
    assert "inches large" in report(tmp_path, "{kind: bars}")
