"""Text that fits a width."""

import pytest

from twoscale.cli.terminal import table_text, wrap

HEADINGS = ("case", "why it was tried", "error %", "seconds in all")
ROWS = [
    ["poisson-128 two-scale coarse_components=20", "the oracle limits the error", "1.2e+30", "3"],
    ["poisson-128 local", "", "0.012 ± 0.001", "1e-12"],
    ["a_name_that_is_longer_than_a_narrow_terminal_is_wide", "short", "nan", "-"],
]


@pytest.mark.parametrize("width", [40, 80, 95, 100, 200])
def test_no_word_is_broken_and_no_line_too_long(width):
    lines = table_text(HEADINGS, ROWS, words=2, width=width).splitlines()
    shown = {word.rstrip(":") for line in lines for word in line.split()}
    words = {word for row in ROWS for cell in row for word in cell.split()}
    assert words <= shown
    assert all(len(line) <= max(width, *map(len, words)) for line in lines)


def test_without_a_width_nothing_is_wrapped():
    lines = table_text(HEADINGS, ROWS, words=2).splitlines()
    assert len(lines) == 2 + len(ROWS)
    assert len({len(line) for line in lines}) == 1


def test_numbers_are_aligned_to_the_right_and_text_to_the_left():
    lines = table_text(("name", "n"), [["a", "1"], ["bcdef", "100"]]).splitlines()
    assert [line.split() for line in lines[2:]] == [["a", "1"], ["bcdef", "100"]]
    assert [line.startswith(" ") for line in lines] == [False] * 4
    assert len({len(line) for line in lines}) == 1


def test_text_is_wrapped_before_records_are_made():
    text = table_text(("name", "n"), [["one two three four five six", "1"]], width=20)
    assert [line.split() for line in text.splitlines()[2:]] == [
        ["one", "two", "three", "1"],
        ["four", "five", "six"],
    ]


def test_a_table_that_cannot_fit_becomes_records():
    rows = [["first", "1", "", "3"], ["", "4", "5", "6"]]
    text = table_text(("name", "alpha", "beta", "gamma"), rows, width=14)
    assert text == "first\n  alpha: 1\n  gamma: 3\n\n\n  alpha: 4\n  beta: 5\n  gamma: 6"


def test_sentences_end_between_words():
    sentence = "twoscale: a_very_long_path/inside exists already: choose another --out"
    lines = wrap(sentence, 20, indent=2).splitlines()
    assert " ".join(" ".join(lines).split()) == sentence
    assert all(len(line) <= 20 or len(line.split()) == 1 for line in lines)
    assert wrap(sentence, None) == sentence
