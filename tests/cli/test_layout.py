"""Text that fits a width."""

import pytest

from twoscale.cli.layout import table_lines, wrap

WIDTHS = (40, 60, 80, 100, 200)
HEADINGS = ("case", "why it was tried", "error %", "seconds in all")
ROWS = [
    ["poisson-128 two-scale coarse_components=20", "the oracle limits the error", "1.2e+30", "3"],
    ["poisson-128 local", "", "0.012 ± 0.001", "1e-12"],
    ["a_name_that_is_longer_than_a_narrow_terminal_is_wide", "short", "nan", "-"],
]


def words(texts):
    return sorted(word for text in texts for word in text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_is_broken(width):
    lines = table_lines(HEADINGS, ROWS, words=2, width=width)
    shown = [word.rstrip(":") for line in lines for word in line.split()]
    for row in ROWS:
        assert set(words(row)) <= set(shown)
    longest = max(len(word) for word in words([cell for row in ROWS for cell in row]))
    assert all(len(line) <= max(width, longest + 4) for line in lines)


def test_without_a_width_nothing_is_wrapped():
    lines = table_lines(HEADINGS, ROWS, words=2)
    assert len(lines) == 2 + len(ROWS)
    assert len({len(line) for line in lines}) == 1


def test_numbers_are_aligned_to_the_right_and_text_to_the_left():
    assert table_lines(("name", "n"), [["a", "1"], ["bcdef", "100"]]) == [
        "name     n",
        "──────────",
        "a        1",
        "bcdef  100",
    ]


def test_text_is_wrapped_before_records_are_made():
    rows = [["one two three four five six", "1"]]
    assert table_lines(("name", "n"), rows, width=20) == [
        "name               n",
        "────────────────────",
        "one two three      1",
        "four five six",
    ]


def test_a_table_that_cannot_fit_becomes_records():
    rows = [["first", "1", "", "3"], ["second", "4", "5", "6"]]
    headings = ("name", "alpha", "beta", "gamma")
    assert table_lines(headings, rows, width=14) == [
        "first",
        "  alpha: 1",
        "  gamma: 3",
        "",
        "second",
        "  alpha: 4",
        "  beta: 5",
        "  gamma: 6",
    ]


def test_sentences_end_between_words():
    sentence = "twoscale: a_very_long_path/inside exists already: choose another --out"
    lines = wrap(sentence, 20, indent=2)
    assert " ".join(" ".join(lines).split()) == sentence
    assert all(len(line) <= 20 or len(line.split()) == 1 for line in lines)
    assert wrap(sentence, None) == [sentence]
    assert wrap("", 10) == [""]
